"""Endpoints: the scopes, request models, handler and responses of one method of one path.

The routes and the OpenAPI document are generated from the endpoints.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from gateway.admin.admission import WorkKind
from gateway.admin.limits import BYTES_PER_TOKEN
from gateway.admin.validation import is_large, read_body, read_query
from gateway.calls.pipeline import CallPipeline
from gateway.catalog.audit import TrailVerifier
from gateway.catalog.audit_export import TrailExporter
from gateway.catalog.doctor.doctor import Doctor
from gateway.catalog.etags import Expected
from gateway.catalog.identity.secret_keys.rotation import SecretRotation
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.tenants import Tenant
from gateway.openapi.document.limits import MAX_DOCUMENT_BYTES
from gateway.registry.connections.connections import Connections
from gateway.registry.cursors import Cursors
from gateway.web.models import BodyModel, NoBody, NoQuery, QueryModel

B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)
B_co = TypeVar("B_co", bound=BodyModel, covariant=True)
Q_co = TypeVar("Q_co", bound=QueryModel, covariant=True)

ADMIN = frozenset({Scope.ADMIN})
READ_AUDIT = frozenset({Scope.ADMIN, Scope.AUDIT})
READ_APPROVALS = frozenset({Scope.ADMIN, Scope.APPROVE})
DECIDE = frozenset({Scope.APPROVE})
OPERATOR_ONLY: frozenset[Scope] = frozenset()
SMALL_BODY = 1024 * 1024
LARGE_BODY = MAX_DOCUMENT_BYTES
NO_TENANT = TenantId("")
"""Placeholder for routes without a tenant in their path; no row belongs to this tenant."""


def tenant_of_cursors(tenant: TenantId) -> TenantId:
    """Return the tenant to which cursors belong: those of the installation name none, as in earlier releases."""
    return NO_TENANT if tenant == INSTALLATION else tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """An authorised request; its body and query are not validated yet."""

    tenant: TenantId
    by: Author
    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: bytes
    media_type: str
    expected: Expected
    sees: Callable[[Tenant], bool] | None = None
    """True for a tenant that the caller sees in lists; None: it sees all."""
    creates_only: bool = False
    """True if `If-None-Match: *` forbids the replacement of an existing object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminRequest(Generic[B_co, Q_co]):
    """An authorised request whose body and query are valid."""

    tenant: TenantId
    by: Author
    path: Mapping[str, str]
    query: Q_co
    body: B_co
    expected: Expected
    creates_only: bool
    sees: Callable[[Tenant], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminResponse:
    """A response; `tag` is the version of the object that it contains."""

    status: int = 200
    content: BaseModel | None = None
    tag: str | None = None
    location: str | None = None
    lines: AsyncGenerator[bytes] | None = None
    """Chunks of lines of JSON that are sent instead of `content`; the first is read before the response starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminDependencies:
    """The dependencies of the admin API's handlers."""

    catalog: CatalogContext
    cursors: Cursors
    doctor: Doctor
    verifier: TrailVerifier
    exporter: TrailExporter
    connections: Connections
    """The connections and the pipeline of clients' calls, for tried calls."""
    calls: CallPipeline
    secret_keys: SecretRotation


Handle = Callable[[AdminDependencies, AdminRequest[B, Q]], Awaitable[AdminResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint(Generic[B, Q]):
    """One method of one path below `/admin/v1`; `{name}` in the path is a parameter.

    The regular endpoints of a noun are built by `gateway.admin.crud`.
    """

    method: str
    path: str
    summary: str
    """One sentence for the OpenAPI document."""
    handle: Handle[B, Q]
    body: type[B]
    query: type[Q]
    responses: Mapping[int, type[BaseModel] | None]
    """The response models by status."""
    scopes: frozenset[Scope] = ADMIN
    """The key needs one of these scopes. If empty, only the operator may send the request."""
    problems: AbstractSet[int] = frozenset()
    """Statuses of refusals, in addition to those that every such request can have."""
    limit: int = SMALL_BODY
    """Maximum bytes of a request body."""
    bytes_per_token: int = BYTES_PER_TOKEN
    """Bytes of a body that count as one more request: fewer for bodies of many small changes."""
    work: WorkKind = WorkKind.LIGHT
    """The kind of work that a request causes in the replica, in addition to reading and writing rows."""
    media_type: str = "application/json"
    """The media type of a response with content."""
    applied_kind: str = ""
    """The kind of manifests for which a caller with a role that is limited to some kinds may use the endpoint;
    `EVERY_KIND` if the handler compares the kinds itself.
    """
    has_tag: bool = False
    """True if the response has an ETag, and changes accept `If-Match`."""
    reads_trail: bool = False
    """True if the operator may name a deleted tenant, whose audit trail remains."""
    called: str = ""

    @property
    def name(self) -> str:
        """The operation's name, such as `list_keys`: `called` if it is set, else the name of the handler function."""
        if self.called:
            return self.called
        name: str = getattr(self.handle, "__name__")  # noqa: B009  # functions have it; other callables may not
        return name

    async def run(self, admin: AdminDependencies, received: Received) -> AdminResponse:
        """Validate the body and the query, then call the handler.

        Raises:
            InvalidBody: the body does not have the documented form.
            BadInput: the query does not have the documented form.
            DocumentTooLarge: see `gateway.admin.validation.read_body`.
            LimitExceeded: too many large bodies are being read.
            GatewayError: the handler refused the request.
        """
        query = read_query(received.query, self.query)
        slot_pool = admin.catalog.workers.slot_pool
        # A scan of 32 MiB blocks other threads for 0.1 s, so scans share the few slots of document workers.
        async with slot_pool.hold(received.tenant) if is_large(received.body, self.body) else nullcontext():
            body = await read_body(received.body, self.body, tenant=received.tenant, media_type=received.media_type)
        call = AdminRequest(
            tenant=received.tenant,
            by=received.by,
            path=received.path,
            query=query,
            body=body,
            expected=received.expected,
            creates_only=received.creates_only,
            sees=received.sees,
        )
        return await self.handle(admin, call)


Route = Endpoint[Any, Any]
"""An endpoint, independent of the types of its body and query."""
Plain = AdminRequest[NoBody, NoQuery]
AnyRequest = AdminRequest[BodyModel, QueryModel]


def of_installation(route: Route, names: Mapping[str, str]) -> Route:
    """Return the endpoint of the installation's objects that corresponds to one of a tenant's.

    `names` has the end of its name, such as `installation_issuers` for `issuers`.
    """
    verb, _, noun = route.name.partition("_")
    summary = route.summary.replace("the tenant's", "the installation's")
    return replace(
        route,
        path=route.path.removeprefix("/tenants/{t}"),
        called=f"{verb}_{names[noun]}",
        summary=summary,
        scopes=OPERATOR_ONLY,  # guard: installation-objects-of-operators
    )


def is_upsert(route: Route) -> bool:
    """True if a PUT of the route creates a missing object."""
    return route.method == "PUT" and HTTPStatus.CREATED in route.responses
