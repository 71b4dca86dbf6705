"""Endpoints of the declared kinds: list, create, show, set, change and delete."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from pydantic import BaseModel

from gateway.admin.admission import WorkKind
from gateway.admin.crud import AllOptions, Noun, endpoint
from gateway.admin.endpoint import ADMIN, AdminDependencies, AdminRequest, AdminResponse, AnyRequest, Plain, Route
from gateway.admin.list_search import ListRules
from gateway.catalog.etags import Expected
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.minting_collection import MintingCollection
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.kinds.kind import Kind, T
from gateway.kinds.members import keeps
from gateway.web.kinds.kept_members import ReplaceQuery, may_remove
from gateway.web.kinds.models import KindModels, key_query, matching_members, models_of
from gateway.web.models import BodyModel, NoBody, NoQuery, QueryModel

_MUST_NOT_EXIST: Expected = frozenset()
"""The expected versions of `If-None-Match: *`: none is acceptable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEndpoints(Generic[T]):
    """The endpoints of one collection."""

    collection: Collection[T]
    has_change: bool = True
    """False if the PATCH is written by hand."""
    has_rotation: bool = True
    """False if the rotation is written by hand."""

    @property
    def models(self) -> KindModels[T]:
        """The derived models."""
        return models_of(self.collection.kind)

    @property
    def noun(self) -> Noun[Any]:
        """The paths and the response of the kind."""
        kind = self.collection.kind
        path = f"/{kind.plural}" if kind.is_operators else f"/tenants/{{t}}/{kind.plural}"
        return Noun(
            singular=kind.name,
            path=path,
            key=kind.address,
            shown=self.models.shown,
            show=self._show,
            tag=self.collection.tag,
            find=self.collection.get if kind.query_key in kind.filters else None,
            attribute=kind.keyed if kind.is_operators else "",
        )

    @property
    def _creates_by_put(self) -> bool:
        """True unless paths have ids, which the gateway chooses, or the tenant, which only a creation makes."""
        return self.collection.kind.address == "name"

    @property
    def _readers(self) -> frozenset[Scope]:
        """The scopes of keys that may show one object; a tenant is shown to its own admins."""
        kind = self.collection.kind
        return kind.writers if kind.is_operators and not kind.is_tenants else ADMIN

    def routes(self) -> Sequence[Route]:
        """Build the endpoints of all verbs."""
        kind, noun, models = self.collection.kind, self.noun, self.models
        plural = kind.plural_words
        rules = rules_of(kind)
        return [
            noun.list_route(
                f"List the {plural}." if kind.is_operators else f"List the tenant's {plural}.",
                self.collection.page,
                rules,
                models.query,
                page=models.page,
                scopes=kind.writers,
            ),
            endpoint(
                "POST",
                noun.path,
                self._create,
                models.create,
                query=NoQuery,
                responses={201: models.minted},
                **self._options(f"create_{kind.name}", f"Create {kind.one}: {kind.about}.", {429}),
            ),
            # guard: operator-kinds-shown
            noun.show_route(f"Show {kind.one}.", self.collection.get, scopes=self._readers),
            *self._changes(noun.item, "", creates=self._creates_by_put),
            *self._rotations(),
            *(self._changes(noun.path, f"_by_{kind.query_key}", creates=True) if kind.is_found_by_key else ()),
        ]

    def _options(self, called: str, summary: str, problems: AbstractSet[int] = frozenset()) -> AllOptions:
        """The options of an endpoint that writes an object."""
        collection = self.collection
        refusals = {409, 422} if collection.check or collection.prepare else {409}
        work = WorkKind.CHECK if collection.is_heavy else WorkKind.LIGHT
        return AllOptions(
            called=called,
            summary=summary,
            has_tag=True,
            problems=refusals | problems,
            work=work,
            scopes=collection.kind.writers,
        )

    def _changes(self, path: str, suffix: str, *, creates: bool) -> Sequence[Route]:
        """Build PUT, PATCH, if a member can be changed, and DELETE of the object that a path or a query addresses."""
        kind, models = self.collection.kind, self.models
        is_by_key = bool(suffix)
        replaces: type[QueryModel] = ReplaceQuery if keeps(kind.of) else NoQuery
        routes: list[Route] = [
            endpoint(
                "PUT",
                path,
                self._set,
                models.whole,
                query=key_query(kind, is_replacement=True) if is_by_key else replaces,
                responses={200: models.shown, **({201: models.minted} if creates else {})},
                **self._options(
                    f"replace_{kind.name}{suffix}",
                    f"Replace {kind.one}{', or create it' * creates}; absent fields have their default.",
                    {422, 429} if creates else {422},
                ),
            )
        ]
        query = key_query(kind) if is_by_key else NoQuery
        if self.has_change and models.change.model_fields:
            options = self._options(
                f"update_{kind.name}{suffix}", f"Change {kind.one}; absent fields keep their value."
            )
            routes.append(
                endpoint(
                    "PATCH", path, self.change, models.change, query=query, responses={200: models.shown}, **options
                )
            )
        options = AllOptions(
            called=f"delete_{kind.name}{suffix}",
            summary=f"Delete {kind.one}.",
            has_tag=True,
            problems={409},
            scopes=kind.writers,
        )
        return [*routes, endpoint("DELETE", path, self._delete, NoBody, query=query, responses={204: None}, **options)]

    def _rotations(self) -> Sequence[Route]:
        """Build the endpoint that generates another secret, if objects have one."""
        kind, noun = self.collection.kind, self.noun
        if not isinstance(self.collection, MintingCollection) or not self.has_rotation:
            return []
        summary = f"Rotate the secret of {kind.one}; only this response has it. {kind.rotation}"
        problems = frozenset[int]() if kind.has_secret is None else frozenset({409})
        options = AllOptions(
            called=f"rotate_{kind.name}", summary=summary, has_tag=True, problems=problems, scopes=kind.writers
        )
        responses = {200: self.models.minted}
        return [
            endpoint("POST", f"{noun.item}/rotate", self._rotate, NoBody, query=NoQuery, responses=responses, **options)
        ]

    async def _show(self, admin: AdminDependencies, tenant: TenantId, found: Sequence[T]) -> Sequence[BaseModel]:
        statuses = await self.collection.statuses(tenant, admin.catalog, found)
        return [self.models.show(one, status) for one, status in zip(found, statuses, strict=True)]

    async def _create(self, admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
        new = self.models.compose(call.body, self.models.key_of(call.body), None)
        made, secret = await self.collection.create_with_secret(call.tenant, admin.catalog, new, by=call.by)
        return self.noun.to_created(call, made, await self._respond_minted(admin, call, made, secret))

    async def _set(self, admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
        kind, address = self.collection.kind, self._address(call)
        expected = _MUST_NOT_EXIST if call.creates_only else call.expected
        creates = self._creates_by_put or kind.address not in call.path

        def compose(current: T | None) -> T:
            if current is None and not creates:
                raise NotFound(f"no such {kind.words}")
            if current is None:
                self.collection.check_new_name(address)
            check_same(kind, call.body, address, current)
            return self.models.compose(call.body, address, current, may_remove=may_remove(call.query, call.expected))

        change = partial(self.collection.set, call.tenant, admin.catalog, address, compose)
        done, is_new, secret = await change(by=call.by, expected=expected)
        if is_new:
            return self.noun.to_created(call, done, await self._respond_minted(admin, call, done, secret))
        return await self.noun.respond(admin, call, done)

    async def change(self, admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
        """Change the object with the members that were sent."""
        change = partial(self.collection.change, call.tenant, admin.catalog, self._address(call))
        changed = await change(partial(self.models.revise, call.body), by=call.by, expected=call.expected)
        return await self.noun.respond(admin, call, changed)

    async def _delete(self, admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
        remove = partial(self.collection.remove, call.tenant, admin.catalog, self._address(call))
        await remove(by=call.by, expected=call.expected)
        return AdminResponse(status=204)

    def _address(self, call: AnyRequest) -> str:
        """The name or id in the path, or the key in the query."""
        kind = self.collection.kind
        found: str = call.path.get(kind.address) or getattr(call.query, kind.query_key)
        return found

    async def _rotate(self, admin: AdminDependencies, call: Plain) -> AdminResponse:
        assert isinstance(self.collection, MintingCollection)  # `routes` adds this endpoint to no other
        rotate = partial(self.collection.rotate, call.tenant, admin.catalog, call.path[self.noun.key])
        rotated, secret = await rotate(by=call.by, expected=call.expected)
        return await self._respond_minted(admin, call, rotated, secret)

    async def _respond_minted(
        self, admin: AdminDependencies, call: AnyRequest, one: T, secret: str | None
    ) -> AdminResponse:
        [status] = await self.collection.statuses(call.tenant, admin.catalog, [one])
        return AdminResponse(content=self.models.show_minted(one, status, secret), tag=self.collection.tag(one))


def rules_of(kind: Kind[T]) -> ListRules[T]:
    """The rules of the list of a kind."""
    return ListRules(
        name=kind.plural.replace("-", "_"),
        keyed=kind.query_key,
        attribute=kind.keyed,
        texts=kind.texts,
        facts={name: each.value for name, each in kind.filters.items()},
    )


def check_same(kind: Kind[Any], body: BodyModel, named: str, current: Any) -> None:
    """Refuse the body of a PUT that gives the id or key of another object, or creates one with another key.

    Raises:
        InvalidBody: it does; the faults name the members.
    """
    given = {member: getattr(body, member) for member in matching_members(kind)}
    known = {member: named if current is None else getattr(current, member) for member in given}
    faults = [
        Fault(pointer=f"/{member}", reason="must be that of the object in the path; leave it out, or use PATCH")
        for member, value in given.items()
        if value is not None and value != known[member] and not (member == "id" and current is None)
    ]
    if current is None and kind.key_in and kind.key_sent(body.sent()) != named:
        reason = "must equal the name in the path or query, because the object does not exist yet"
        faults.append(Fault(pointer=f"/{'/'.join(kind.key_in)}", reason=reason))
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
