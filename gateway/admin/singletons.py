"""Endpoints of the declared singletons: show, set and change."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from gateway.admin.crud import AllOptions, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, AnyRequest, Plain, Route
from gateway.catalog.kinds.engines.single_object import SingleObject
from gateway.domain.identifiers import TenantId
from gateway.kinds.members import keeps
from gateway.kinds.singleton import S
from gateway.web.kinds.kept_members import ReplaceQuery, may_remove
from gateway.web.kinds.singleton_models import SingletonModels, singleton_models_of
from gateway.web.models import BodyModel, NoBody, NoQuery, QueryModel


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonEndpoints(Generic[S]):
    """The endpoints of one singleton. `has_get` is false if its GET is written by hand."""

    single: SingleObject[S]
    problems: AbstractSet[int] = frozenset()
    """Statuses of the refusals of special checks."""
    has_get: bool = True

    @property
    def models(self) -> SingletonModels[S]:
        """The derived models."""
        return singleton_models_of(self.single.kind)

    @property
    def path(self) -> str:
        """The path."""
        return f"/tenants/{{t}}/{self.single.kind.path}"

    def routes(self) -> Sequence[Route]:
        """Build the endpoints of all verbs."""
        kind, models, path = self.single.kind, self.models, self.path

        def named(verb: str, summary: str, problems: AbstractSet[int] = frozenset()) -> AllOptions:
            scopes = kind.readers if verb == "get" else kind.writers
            return AllOptions(
                called=f"{verb}_{kind.noun}", summary=summary, has_tag=True, scopes=scopes, problems=problems
            )

        replaces = f"Replace {kind.about}; absent fields have their default."
        query: type[QueryModel] = ReplaceQuery if keeps(kind.of) else NoQuery
        refusals = {*self.problems, *({409} if keeps(kind.of) else ())}
        shows = endpoint(
            "GET",
            path,
            self._get,
            NoBody,
            query=NoQuery,
            responses={200: models.shown},
            **named("get", f"Show {kind.about}."),
        )
        return [
            *([shows] if self.has_get else []),
            endpoint(
                "PUT",
                path,
                self._set,
                models.whole,
                query=query,
                responses={200: models.shown},
                **named("replace", replaces, refusals),
            ),
            endpoint(
                "PATCH",
                path,
                self._change,
                models.change,
                query=NoQuery,
                responses={200: models.shown},
                **named("update", f"Change {kind.about}; absent fields keep their value.", self.problems),
            ),
        ]

    async def respond(self, admin: AdminDependencies, tenant: TenantId, one: S | None = None) -> AdminResponse:
        """Build the response with an object, by default the stored one."""
        found = await self.single.show(tenant, admin.catalog, one)
        return AdminResponse(content=self.models.show(found.one, found.status), tag=found.tag)

    async def _get(self, admin: AdminDependencies, call: Plain) -> AdminResponse:
        return await self.respond(admin, call.tenant)

    async def _set(self, admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
        initial = self.single.initial(self.single.kind.of, admin.catalog.options)
        compose = partial(self._compose, call.body, initial=initial, may_remove=may_remove(call.query, call.expected))
        done = await self.single.set(call.tenant, admin.catalog, compose, by=call.by, expected=call.expected)
        return await self.respond(admin, call.tenant, done)

    def _compose(self, body: BodyModel, current: S, *, initial: S, may_remove: bool) -> S:
        return self.models.compose(body, current, initial, may_remove=may_remove)

    async def _change(self, admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
        revise: Any = partial(self.models.revise, call.body)
        done = await self.single.change(call.tenant, admin.catalog, revise, by=call.by, expected=call.expected)
        return await self.respond(admin, call.tenant, done)
