"""Rules of the lists of the admin API: the searched strings, filters and orders of each noun.

Items are compared in Python instead of SQL, so that letter case follows Unicode, regardless of the database's
collation. No character of a search is a wildcard. A search reads the definitions after overrides are applied.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar
from unicodedata import normalize

from gateway.catalog.live.overview import LivePrimitiveView
from gateway.domain.order import Order, join_position, write_moment
from gateway.domain.tenancy.own_primitives import definition_texts
from gateway.domain.updates.webhook_endpoints import OutboundDelivery
from gateway.web.models import PageQuery

T = TypeVar("T")

_PAGE_PARAMETERS = frozenset({"limit", "cursor"})
_LIST_PARAMETERS = frozenset({"search", "sort"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules(Generic[T]):
    """Listing rules of one noun.

    Orders and filters read the item's attribute that has the name of the `sort` value or of the query parameter. The
    default order needs a unique attribute; in every other order, `id` breaks ties.
    """

    name: str
    keyed: str = "name"
    """The order of a list without `sort`."""
    attribute: str = ""
    """The attribute of the order `keyed`, if it has another name."""
    texts: Callable[[T], Iterable[str | None]]
    """The strings that a search reads."""
    facts: Mapping[str, Callable[[T], object]] = field(default_factory=dict[str, Callable[[T], object]])
    """The filter values that are not attributes, by query parameter."""

    def order_of(self, query: PageQuery) -> Order:
        """Return the order that a query requests."""
        sort: str = getattr(query, "sort", None) or self.keyed
        by = sort.removeprefix("-")
        return Order(by=None if by == self.keyed else by, is_descending=sort.startswith("-"))

    def position_of(self, item: T, order: Order) -> str:
        """Return the position of an item in an order."""
        if order.by is None:
            key: str = getattr(item, self.attribute or self.keyed)
            return key
        value: str | datetime | None = getattr(item, order.by)
        tie: str = getattr(item, "id")  # noqa: B009  # items of nouns with another order have an id
        return join_position(value if isinstance(value, str) else write_moment(value), tie)

    def matches(self, item: T, query: PageQuery) -> bool:
        """True if an item matches the search and the filters of a query."""
        parameters = given_parameters(query)
        searched = parameters.pop("search", None)
        wanted = ((name, value) for name, value in parameters.items() if self._is_filter(name))
        return all(_equals_or_contains(self._filter_value(item, name), value) for name, value in wanted) and (
            not isinstance(searched, str) or _contains(searched, self.texts(item))
        )

    def _is_filter(self, name: str) -> bool:
        return name in self.facts or name not in _LIST_PARAMETERS

    def _filter_value(self, item: T, name: str) -> object:
        return self.facts[name](item) if name in self.facts else getattr(item, name)


def given_parameters(query: PageQuery) -> dict[str, object]:
    """Return the parameters that a query contains, except `limit` and `cursor`."""
    return {
        name: value
        for name in type(query).model_fields
        if name not in _PAGE_PARAMETERS and (value := getattr(query, name)) is not None
    }


def is_narrowed(query: PageQuery) -> bool:
    """True if a query can exclude items."""
    return bool(given_parameters(query).keys() - {"sort"})


def _equals_or_contains(fact: object, wanted: object) -> bool:
    return wanted in fact if isinstance(fact, frozenset) else fact == wanted


def _contains(searched: str, texts: Iterable[str | None]) -> bool:
    # Only the search is normalized, to both forms (Unicode TR 15). Normalizing a description of 16,000
    # combining marks takes half a second, and tenants write the descriptions.
    forms = {normalize("NFC", searched.casefold()), normalize("NFD", searched.casefold())}
    # guard: list-search-as-stored
    return any(form in folded for text in texts if text for folded in (text.casefold(),) for form in forms)


LIVE_PRIMITIVES: ListRules[LivePrimitiveView] = ListRules(
    name="live_primitives",
    keyed="place",
    texts=lambda one: (one.remembered.primitive.remote, *definition_texts(one.remembered.primitive.definition)),
    facts={"suspicious": lambda one: bool(one.remembered.findings)},
)
WEBHOOK_DELIVERIES: ListRules[OutboundDelivery] = ListRules(
    name="webhook_deliveries", keyed="id", texts=lambda one: (one.id, one.kind, one.error)
)
