"""Endpoints of the declared records: list and show. Actions are added to them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic

from gateway.admin.crud import Noun, ReadPage, each
from gateway.admin.endpoint import ADMIN, Route
from gateway.admin.list_search import ListRules
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.kinds.record import R, Record
from gateway.web.kinds.annotations import page_model, shown_model
from gateway.web.kinds.models import query_model
from gateway.web.models import PageQuery


@dataclass(frozen=True, kw_only=True)
class RecordEndpoints(Generic[R]):
    """The endpoints of one kind of record."""

    record: Record[R]
    page: ReadPage[R]
    get: Callable[[TenantId, CatalogContext, str], Awaitable[R]]
    filter_of: type | None = None
    """The class of the argument `wanted` of `page`, which has a member for each filter; the database applies it."""
    scopes: frozenset[Scope] = ADMIN
    """The scopes of keys that may read the records."""

    @cached_property
    def noun(self) -> Noun[Any]:
        """The paths and the response of the record."""
        shown = shown_model(self.record.of)
        return Noun(
            singular=self.record.name,
            path=f"/tenants/{{t}}/{self.record.plural}",
            key="id",
            shown=shown,
            show=each(shown.of),
            narrow=self._narrow,
        )

    def _narrow(self, query: PageQuery) -> Mapping[str, Any]:
        if self.filter_of is None:
            return {}
        return {"wanted": self.filter_of(**{name: getattr(query, name) for name in self.record.filters})}

    def routes(self) -> Sequence[Route]:
        """Build the endpoints of the list and of one record."""
        record, noun = self.record, self.noun
        page = page_model(f"{record.stem}Page", shown_model(record.of), f"One page of {record.about}.")
        listed = noun.list_route(
            f"List {record.about}.", self.page, rules_of(record), query_model(record), page=page, scopes=self.scopes
        )
        return [listed, noun.show_route(f"Show {record.one}.", self.get, scopes=self.scopes)]


def rules_of(record: Record[R]) -> ListRules[R]:
    """The rules of the list of a kind of record."""
    return ListRules(
        name=record.plural.replace("-", "_"),
        keyed=record.keyed,
        texts=record.texts,
        facts={name: each.value for name, each in record.filters.items()},
    )
