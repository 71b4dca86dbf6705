"""What one method of one path is: who may ask, what is read, what is answered; routes and OpenAPI are made from it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel

from gateway.admin.limits import WorkKind
from gateway.admin.requests.models import BodyModel, NoBody, NoQuery, QueryModel
from gateway.admin.validation import read_body, read_query
from gateway.calls.pipeline import CallPipeline
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.etags import Expected
from gateway.catalog.transaction import Author, CatalogContext
from gateway.connections.connections import Connections
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.registry.cursors import Cursors

B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)

ADMIN = frozenset({Scope.ADMIN})
READ_AUDIT = frozenset({Scope.ADMIN, Scope.AUDIT})
OPERATOR_ONLY: frozenset[Scope] = frozenset()
SMALL = 1024 * 1024
LARGE = 32 * 1024 * 1024
NO_TENANT = TenantId("")
"""The tenant of routes that name none; no row belongs to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """An authorised request, its body and query still as they came."""

    tenant: TenantId
    by: Author
    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: bytes
    expected: Expected
    creates_only: bool = False
    """True if `If-None-Match: *` forbids the replacement of an existing object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminRequest(Generic[B, Q]):
    """An authorised request whose body and query are valid."""

    tenant: TenantId
    by: Author
    path: Mapping[str, str]
    query: Q
    body: B
    expected: Expected
    creates_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminResponse:
    """What is sent back; `tag` names the version of the object in it."""

    status: int = 200
    content: BaseModel | None = None
    tag: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminDependencies:
    """What the handlers of this face work with."""

    catalog: CatalogContext
    cursors: Cursors
    doctor: Doctor
    connections: Connections
    calls: CallPipeline


Handle = Callable[[AdminDependencies, AdminRequest[B, Q]], Awaitable[AdminResponse]]


class Route(Protocol):
    """An endpoint, whatever its body and query are."""

    @property
    def name(self) -> str:
        """What the operation is called, such as `list_keys`."""
        ...

    @property
    def method(self) -> str:
        """GET, POST, PUT, PATCH or DELETE."""
        ...

    @property
    def path(self) -> str:
        """Below /admin/v1, with `{name}` for what varies."""
        ...

    @property
    def summary(self) -> str:
        """One sentence for the OpenAPI document."""
        ...

    @property
    def scopes(self) -> frozenset[Scope]:
        """One of these is needed; none: only the operator may ask."""
        ...

    @property
    def body(self) -> type[BodyModel]:
        """What is read."""
        ...

    @property
    def query(self) -> type[QueryModel]:
        """What is read from the query."""
        ...

    @property
    def answers(self) -> Mapping[int, type[BaseModel] | None]:
        """What is sent back, by status."""
        ...

    @property
    def problems(self) -> frozenset[int]:
        """Statuses of refusals beside those that follow from the shape of the request."""
        ...

    @property
    def limit(self) -> int:
        """Bytes a body may have."""
        ...

    @property
    def work(self) -> WorkKind:
        """Its cost for the replica beside reading and writing rows."""
        ...

    @property
    def has_tag(self) -> bool:
        """Whether the answer names its version, and a change may demand one."""
        ...

    async def run(self, admin: AdminDependencies, received: Received) -> AdminResponse:
        """Validate what came and handle it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[B, Q]):
    """One method of one path."""

    method: str
    path: str
    summary: str
    handle: Handle[B, Q]
    body: type[B]
    query: type[Q]
    answers: Mapping[int, type[BaseModel] | None]
    scopes: frozenset[Scope] = ADMIN
    problems: frozenset[int] = frozenset()
    limit: int = SMALL
    work: WorkKind = WorkKind.LIGHT
    has_tag: bool = False
    called: str = ""

    @property
    def name(self) -> str:
        """What the operation is called: like the function that handles it, where that serves only one."""
        if self.called:
            return self.called
        name: str = getattr(self.handle, "__name__")  # noqa: B009  # a Callable need not have one; functions do
        return name

    async def run(self, admin: AdminDependencies, received: Received) -> AdminResponse:
        """Validate what came and handle it.

        Raises:
            InvalidBody: the body or the query has not the documented form.
        """
        query = read_query(received.query, self.query)
        workers = admin.catalog.workers
        body = await read_body(received.body, self.body, workers=workers, tenant=received.tenant)
        call = AdminRequest(
            tenant=received.tenant,
            by=received.by,
            path=received.path,
            query=query,
            body=body,
            expected=received.expected,
            creates_only=received.creates_only,
        )
        return await self.handle(admin, call)


Plain = AdminRequest[NoBody, NoQuery]


def is_upsert(route: Route) -> bool:
    """True if a PUT of the route creates a missing object."""
    return route.method == "PUT" and HTTPStatus.CREATED in route.answers
