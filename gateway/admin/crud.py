"""Builders of the regular endpoints of a noun: list, create, show, replace, change, delete, and other actions.

Each builder sets the name, path, statuses and entity tag of its endpoint; the endpoint table of a noun adds the rest.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial
from inspect import getdoc
from typing import Any, Generic, Protocol, TypedDict, TypeVar, Unpack, cast
from urllib.parse import quote

from pydantic import BaseModel

from gateway.admin.admission import WorkKind
from gateway.admin.endpoint import (
    AdminDependencies,
    AdminRequest,
    AdminResponse,
    AnyRequest,
    Endpoint,
    Handle,
    Plain,
    Route,
)
from gateway.admin.list_search import ListRules
from gateway.admin.pagination import read_list
from gateway.catalog.etags import Expected, Versioned, tag_of
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.order import Order
from gateway.domain.tenancy.keys import Scope
from gateway.errors import NotFound
from gateway.web.models import BodyModel, NoBody, NoQuery, PageQuery, QueryModel

T = TypeVar("T", bound=Versioned)
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K", bound=str)
K_contra = TypeVar("K_contra", bound=str, contravariant=True)
B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)
P = TypeVar("P", bound=PageQuery)

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
ResponseModels = Mapping[int, type[BaseModel] | None]
"""The response models by status."""
Show = Callable[[AdminDependencies, TenantId, Sequence[T]], Awaitable[Sequence[BaseModel]]]
"""Builds the response models of several objects."""


class ReadPage(Protocol[T_co]):
    """Reads a tenant's objects from the catalog: at most `limit` after the position `after`."""

    def __call__(
        self, tenant: TenantId, catalog: CatalogContext, /, *, after: str | None, limit: int, order: Order
    ) -> Awaitable[Sequence[T_co]]:
        """Return the objects, ordered by position."""
        ...


class Remove(Protocol[K_contra]):
    """Deletes one object of a tenant from the catalog."""

    def __call__(
        self, tenant: TenantId, catalog: CatalogContext, key: K_contra, /, *, by: Author, expected: Expected
    ) -> Awaitable[None]:
        """Delete the object of this name or id if it has an expected version."""
        ...


class Act(Protocol[T_co]):
    """Changes one object or record of a tenant in the catalog."""

    def __call__(
        self, tenant: TenantId, catalog: CatalogContext, key: str, /, *, by: Author, expected: Expected
    ) -> Awaitable[T_co]:
        """Change the object of this name or id if it has an expected version; return it."""
        ...


class Options(TypedDict, total=False):
    """Optional fields of an endpoint that no builder sets."""

    scopes: frozenset[Scope]
    problems: AbstractSet[int]
    limit: int
    bytes_per_token: int
    applied_kind: str
    work: WorkKind
    media_type: str
    reads_trail: bool


class AllOptions(Options, total=False):
    """All optional fields of an endpoint."""

    called: str
    summary: str
    has_tag: bool


def endpoint(
    method: str,
    path: str,
    handle: Handle[B, Q],
    body: type[B],
    *,
    query: type[Q],
    responses: ResponseModels,
    **options: Unpack[AllOptions],
) -> Route:
    """Build an endpoint. The default summary is the first paragraph of the handler's docstring."""
    options.setdefault("summary", " ".join((getdoc(handle) or "").partition("\n\n")[0].split()))
    return Endpoint(method=method, path=path, handle=handle, body=body, query=query, responses=responses, **options)


def each(show: Callable[[T], BaseModel]) -> Show[T]:
    """Return a `Show` that builds each response model with `show`, from its object alone."""

    async def show_all(_: AdminDependencies, __: TenantId, found: Sequence[T]) -> Sequence[BaseModel]:
        return [show(one) for one in found]

    return show_all


async def _find(find: Callable[[], Awaitable[T]], rules: ListRules[T], query: PageQuery) -> Sequence[T]:
    """The one object that a query addresses, if it exists and passes the search and the filters."""
    try:
        found = await find()
    except NotFound:
        return []
    return [found] if rules.matches(found, query) else []


def _is_plain(name: str) -> bool:
    """True if a path can contain the name unquoted. A name of dots only may be a relative segment (RFC 3986)."""
    return _UNRESERVED.issuperset(name) and bool(name.strip("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun(Generic[T]):
    """One noun of the admin API; `key` is the path parameter of an object."""

    singular: str
    """The noun in the names of operations, such as `key` in `get_key`."""
    path: str
    """The path of the list."""
    key: str
    shown: type[BaseModel]
    """The response model of one object."""
    show: Show[T]
    tag: Callable[[T], str] = tag_of
    find: Callable[[TenantId, CatalogContext, str], Awaitable[T]] | None = None
    """Reads the one object of a list whose query gives the key; None if the list has no such filter."""
    narrow: Callable[[PageQuery], Mapping[str, Any]] = lambda _: {}
    """Returns further arguments of the reader of the list: the filters of a query that the database applies."""
    attribute: str = ""
    """The attribute that has the value of `key`, if it has another name."""

    @property
    def item(self) -> str:
        """The path of one object."""
        return f"{self.path}/{{{self.key}}}"

    async def respond(self, admin: AdminDependencies, call: AnyRequest, found: T) -> AdminResponse:
        """Build the response with one object."""
        [content] = await self.show(admin, call.tenant, [found])
        return AdminResponse(content=content, tag=self.tag(found))

    def to_created(self, call: AnyRequest, new: T, response: AdminResponse) -> AdminResponse:
        """Convert the response with a new object to 201 with its location."""
        key: str = getattr(new, self.attribute or self.key)
        if not _is_plain(key):
            key = getattr(new, "id")  # noqa: B009  # every object with a name has an id
        path = self.path.replace("{t}", quote(call.path.get("t", "")))
        return replace(response, status=201, location=f"{path}/{quote(key)}")

    def list_route(
        self,
        summary: str,
        read: ReadPage[T],
        rules: ListRules[T],
        query: type[P],
        *,
        page: type[BaseModel],
        **options: Unpack[Options],
    ) -> Route:
        """Build the GET endpoint of the list."""

        async def handle(admin: AdminDependencies, call: AdminRequest[NoBody, P]) -> AdminResponse:
            read_tenant = partial(read, call.tenant, admin.catalog, **self.narrow(call.query))
            key: str | None = None if self.find is None else getattr(call.query, rules.keyed)
            if self.find is not None and key is not None:
                find_one = partial(self.find, call.tenant, admin.catalog, key)
                found, cursor = await _find(find_one, rules, call.query), None
            else:
                seen = cast("Callable[[T], bool] | None", call.sees)
                found, cursor = await read_list(
                    admin.cursors, call.tenant, rules, call.query, read=read_tenant, sees=seen
                )
            items = await self.show(admin, call.tenant, found)
            return AdminResponse(content=page(items=items, next_cursor=cursor))

        all_options: AllOptions = {**options, "called": f"list_{rules.name}", "summary": summary, "has_tag": False}
        return endpoint("GET", self.path, handle, NoBody, query=query, responses={200: page}, **all_options)

    def create_route(
        self,
        handle: Handle[B, NoQuery],
        body: type[B],
        responses: ResponseModels | None = None,
        **options: Unpack[Options],
    ) -> Route:
        """Build the POST that creates an object; `responses` replaces the default response models."""
        responses = responses or {201: self.shown}
        return endpoint("POST", self.path, handle, body, query=NoQuery, responses=responses, has_tag=True, **options)

    def show_route(
        self, summary: str, read: Callable[[TenantId, CatalogContext, K], Awaitable[T]], **options: Unpack[Options]
    ) -> Route:
        """Build the GET endpoint of one object."""

        async def handle(admin: AdminDependencies, call: Plain) -> AdminResponse:
            key = cast("K", call.path[self.key])
            return await self.respond(admin, call, await read(call.tenant, admin.catalog, key))

        all_options: AllOptions = {**options, "called": f"get_{self.singular}", "summary": summary, "has_tag": True}
        return endpoint("GET", self.item, handle, NoBody, query=NoQuery, responses={200: self.shown}, **all_options)

    def upsert_route(
        self,
        handle: Handle[B, NoQuery],
        body: type[B],
        responses: ResponseModels | None = None,
        **options: Unpack[Options],
    ) -> Route:
        """Build the PUT endpoint that replaces an object or creates it."""
        responses = responses or {200: self.shown, 201: self.shown}
        return endpoint("PUT", self.item, handle, body, query=NoQuery, responses=responses, has_tag=True, **options)

    def update_route(
        self,
        handle: Handle[B, NoQuery],
        body: type[B],
        responses: ResponseModels | None = None,
        **options: Unpack[Options],
    ) -> Route:
        """Build the PATCH endpoint that changes the sent fields of an object."""
        responses = responses or {200: self.shown}
        return endpoint("PATCH", self.item, handle, body, query=NoQuery, responses=responses, has_tag=True, **options)

    def delete_route(self, summary: str, remove: Remove[K], **options: Unpack[Options]) -> Route:
        """Build the DELETE endpoint of an object."""

        async def handle(admin: AdminDependencies, call: Plain) -> AdminResponse:
            key = cast("K", call.path[self.key])
            await remove(call.tenant, admin.catalog, key, by=call.by, expected=call.expected)
            return AdminResponse(status=204)

        all_options: AllOptions = {**options, "called": f"delete_{self.singular}", "summary": summary, "has_tag": True}
        return endpoint("DELETE", self.item, handle, NoBody, query=NoQuery, responses={204: None}, **all_options)

    def act_route(self, verb: str, summary: str, act: Act[T], *, called: str = "", **options: Unpack[Options]) -> Route:
        """Build the POST endpoint of another action on one object, such as `/revoke`; the response has the object."""

        async def handle(admin: AdminDependencies, call: Plain) -> AdminResponse:
            done = await act(call.tenant, admin.catalog, call.path[self.key], by=call.by, expected=call.expected)
            return await self.respond(admin, call, done)

        called = called or f"{verb}_{self.singular}"
        all_options: AllOptions = {**options, "called": called, "summary": summary, "has_tag": True}
        return endpoint(
            "POST", f"{self.item}/{verb}", handle, NoBody, query=NoQuery, responses={200: self.shown}, **all_options
        )

    def action_route(
        self,
        verb: str,
        handle: Handle[NoBody, NoQuery],
        responses: ResponseModels | None = None,
        **options: Unpack[Options],
    ) -> Route:
        """Build the POST endpoint of another action on one object, such as `/rotate`."""
        responses = responses or {200: self.shown}
        return endpoint(
            "POST", f"{self.item}/{verb}", handle, NoBody, query=NoQuery, responses=responses, has_tag=True, **options
        )
