"""Endpoints of the declared kinds: list, create, show, set, change and delete."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic

from pydantic import BaseModel

from gateway.admin.crud import AllOptions, Noun, endpoint
from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, AnyRequest, Plain, Route
from gateway.admin.list_search import ListRules
from gateway.catalog.etags import Expected
from gateway.catalog.kinds.collection import Collection, tag_of_kind
from gateway.catalog.kinds.minting_collection import MintingCollection
from gateway.domain.identifiers import TenantId
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.kinds.kind import Kind, T
from gateway.kinds.members import keeps
from gateway.web.kinds.kept_members import ReplaceQuery, may_remove
from gateway.web.kinds.models import KindModels, models_of
from gateway.web.models import BodyModel, NoBody, NoQuery

_MUST_NOT_EXIST: Expected = frozenset()
"""The expected versions of `If-None-Match: *`: none is acceptable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindEndpoints(Generic[T]):
    """The endpoints of one collection."""

    collection: Collection[T]

    @property
    def models(self) -> KindModels[T]:
        """The derived models."""
        return models_of(self.collection.kind)

    @property
    def noun(self) -> Noun[Any]:
        """The paths and the response of the kind."""
        kind = self.collection.kind
        path = f"/tenants/{{t}}/{kind.plural}"
        return Noun(singular=kind.name, path=path, key=kind.address, shown=self.models.shown, show=self._show)

    @property
    def _creates_by_put(self) -> bool:
        """True unless paths have ids, which the gateway chooses."""
        return self.collection.kind.address != "id"

    def routes(self) -> Sequence[Route]:
        """Build the endpoints of all verbs."""
        kind, noun, models = self.collection.kind, self.noun, self.models
        words, plural = kind.words, kind.plural_words
        rules: ListRules[Any] = ListRules(
            name=kind.plural.replace("-", "_"),
            keyed=kind.keyed,
            texts=kind.texts,
            facts={name: each.value for name, each in kind.filters.items()},
        )
        refusals = {409, 422} if self.collection.check or self.collection.prepare else {409}

        def named(verb: str, summary: str, problems: AbstractSet[int]) -> AllOptions:
            return AllOptions(called=f"{verb}_{kind.name}", summary=summary, has_tag=True, problems=problems)

        return [
            noun.list_route(f"List the tenant's {plural}.", self.collection.page, rules, models.query, models.page),
            endpoint(
                "POST",
                noun.path,
                self._create,
                models.create,
                NoQuery,
                {201: models.minted},
                **named("create", f"Create a {words}: {kind.about}.", refusals | {429}),
            ),
            noun.show_route(f"Show a {words}.", self.collection.get),
            endpoint(
                "PUT",
                noun.item,
                self._set,
                models.whole,
                ReplaceQuery if keeps(kind.of) else NoQuery,
                {200: models.shown, **({201: models.minted} if self._creates_by_put else {})},
                **named(
                    "replace",
                    f"Replace a {words}{', or create it' * self._creates_by_put}; absent fields have their default.",
                    refusals | ({422, 429} if self._creates_by_put else {422}),
                ),
            ),
            *self._changes(named("update", f"Change a {words}; absent fields keep their value.", refusals)),
            *self._rotations(),
            noun.delete_route(f"Delete a {words}.", self.collection.remove, problems={409}),
        ]

    def _changes(self, options: AllOptions) -> Sequence[Route]:
        """Build the PATCH, if a member can be changed."""
        models = self.models
        if not models.change.model_fields:
            return []
        return [endpoint("PATCH", self.noun.item, self._change, models.change, NoQuery, {200: models.shown}, **options)]

    def _rotations(self) -> Sequence[Route]:
        """Build the endpoint that generates another secret, if objects have one."""
        kind, noun = self.collection.kind, self.noun
        if not isinstance(self.collection, MintingCollection):
            return []
        summary = f"Rotate the secret of a {kind.words}; only this response has it. {kind.rotation}"
        problems = frozenset[int]() if kind.has_secret is None else frozenset({409})
        options = AllOptions(called=f"rotate_{kind.name}", summary=summary, has_tag=True, problems=problems)
        responses = {200: self.models.minted}
        return [endpoint("POST", f"{noun.item}/rotate", self._rotate, NoBody, NoQuery, responses, **options)]

    async def _show(self, admin: AdminDependencies, tenant: TenantId, found: Sequence[T]) -> Sequence[BaseModel]:
        statuses = await self.collection.statuses(tenant, admin.catalog, found)
        return [self.models.show(one, status) for one, status in zip(found, statuses, strict=True)]

    async def _create(self, admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
        key: str = getattr(call.body, self.collection.kind.keyed, "")
        new = self.models.compose(call.body, key, None)
        made, secret = await self.collection.create_with_secret(call.tenant, admin.catalog, new, by=call.by)
        return self.noun.to_created(call, made, await self._respond_minted(admin, call, made, secret))

    async def _set(self, admin: AdminDependencies, call: AnyRequest) -> AdminResponse:
        address = call.path[self.collection.kind.address]
        expected = _MUST_NOT_EXIST if call.creates_only else call.expected

        def compose(current: T | None) -> T:
            if current is None and not self._creates_by_put:
                raise NotFound(f"no such {self.collection.kind.words}")
            _check_same(self.collection.kind, call.body, address, current)
            return self.models.compose(call.body, address, current, may_remove=may_remove(call.query, call.expected))

        change = partial(self.collection.set, call.tenant, admin.catalog, address, compose)
        done, is_new, secret = await change(by=call.by, expected=expected)
        if is_new:
            return self.noun.to_created(call, done, await self._respond_minted(admin, call, done, secret))
        return await self.noun.respond(admin, call, done)

    async def _change(self, admin: AdminDependencies, call: AdminRequest[BodyModel, NoQuery]) -> AdminResponse:
        change = partial(self.collection.change, call.tenant, admin.catalog, call.path[self.noun.key])
        changed = await change(partial(self.models.revise, call.body), by=call.by, expected=call.expected)
        return await self.noun.respond(admin, call, changed)

    async def _rotate(self, admin: AdminDependencies, call: Plain) -> AdminResponse:
        assert isinstance(self.collection, MintingCollection)  # `routes` adds this endpoint to no other
        rotate = partial(self.collection.rotate, call.tenant, admin.catalog, call.path[self.noun.key])
        rotated, secret = await rotate(by=call.by, expected=call.expected)
        return await self._respond_minted(admin, call, rotated, secret)

    async def _respond_minted(
        self, admin: AdminDependencies, call: AnyRequest, one: T, secret: str | None
    ) -> AdminResponse:
        [status] = await self.collection.statuses(call.tenant, admin.catalog, [one])
        return AdminResponse(content=self.models.show_minted(one, status, secret), tag=tag_of_kind(one))


def _check_same(kind: Kind[Any], body: BodyModel, named: str, current: Any) -> None:
    """Refuse the body of a PUT that gives the id or name of another object.

    Raises:
        InvalidBody: it does; the faults name the members.
    """
    given = {member: getattr(body, member) for member in ("id", *(["name"] if kind.is_named else []))}
    known = {member: named if current is None else getattr(current, member) for member in given}
    faults = [
        Fault(pointer=f"/{member}", reason="must be that of the object in the path; leave it out, or use PATCH")
        for member, value in given.items()
        if value is not None and value != known[member] and not (member == "id" and current is None)
    ]
    if faults:
        raise InvalidBody(f"{faults[0].pointer}: {faults[0].reason}", faults=faults)
