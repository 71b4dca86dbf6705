"""Catalog changes: one transaction with the next revision and an audit entry, then an event to all replicas.

A change locks the tenant's row first. So the changes of one tenant are serialised, and the results of a change's checks
are still valid at its commit.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import structlog

from gateway.catalog.limits import PUBLISH_TIMEOUT_S
from gateway.catalog.snapshots.python_primitives import PythonPrimitives
from gateway.catalog.sources.worker_pool import WorkerPool
from gateway.definitions.changed_fields import describe_change
from gateway.domain.audit import AnchorKind, CallRecord
from gateway.domain.events import CatalogMoved, Event
from gateway.domain.http.idempotency import Attempt
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS
from gateway.domain.tenancy.ownership import OwningSet
from gateway.domain.tenancy.policy import PROTECTING, Limits, Policy
from gateway.domain.tenancy.principals import Caller, Operator, Principal
from gateway.errors import AuditUnavailable, Conflict, NotFound, RedisUnavailable
from gateway.store import idempotency, tenants
from gateway.store.audit import anchors, entries
from gateway.store.audit.anchors import ANCHOR_PURPOSE
from gateway.store.audit.hash_chain import CREATION
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store, scoped
from gateway.telemetry.log_context import CLAIMED_CLIENT
from gateway.upstream.auth.key_sets import KeySets
from gateway.upstream.client import UpstreamClient
from gateway.upstream.secret_stores.stores import SecretStores

log = structlog.get_logger(__name__)


GATEWAY = Operator(name="gateway")
"""Author of changes that background jobs or rules make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOrigin:
    """The origin of a request: the address, the way (`rest` or `apply`), and the name that the client gives itself."""

    address: str
    way: str
    client: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """The principal that makes a change, and the identifiers of its request."""

    caller: Caller
    correlation_id: str
    origin: RequestOrigin | None = None
    """None for a change that no request of the admin API makes."""
    attempt: Attempt | None = None
    """The attempt of a request with an `Idempotency-Key`; the change commits only if the attempt owns the record."""


async def _refuse_records(_: CallRecord) -> None:
    raise AuditUnavailable("this process does not write audit entries for calls")


async def _settle_nothing(_: TenantId) -> None:
    """Do nothing: this process notes no refusals."""


def _count_nothing(_: str) -> None:
    """Do nothing: this process counts no drift."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogOptions:
    """The operator's settings for the catalog."""

    ceilings: Limits = DEFAULT_CEILINGS
    """Default ceilings, for limits whose ceiling the operator has not set."""
    tenant_policy: Policy = PROTECTING
    """The policy of new tenants."""
    public_url: str | None = None
    """The gateway's public base URL, for links to its web pages."""
    mcp_base_url: str | None = None
    """Base URL of MCP if it is known to differ from that of the admin API."""
    live_commands: bool = False
    """True if the operator may declare live sources of the kind `command`."""
    reference_hosts: frozenset[str] = frozenset()
    """Hosts from which files that an imported document refers to are fetched."""
    retention_min_days: int = 30
    """Minimum retention of audit entries in days."""
    refresh_min_s: int = 300
    """Minimum number of seconds between two refreshes of a source."""
    upstream_timeout_max_s: float = 300.0
    """Maximum time limit that a source may set for its calls, in seconds."""
    versions_kept: int = 10
    """Number of stored versions of each source, including the active one."""


_DEFAULT_OPTIONS = CatalogOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext:
    """Dependencies of reads and changes of the catalog, for one replica: database, encryption keys, event bus, options.

    `upstream`, `workers` and `secret_stores` fetch and compile documents, for imports only.
    """

    store: Store
    sealer: EnvelopeCipher
    upstream: UpstreamClient
    publish: Callable[[Event], Awaitable[None]]
    chain_key: bytes
    workers: WorkerPool = field(default_factory=WorkerPool)
    code: PythonPrimitives | None = None
    """Primitives registered in Python."""
    audit: Callable[[CallRecord], Awaitable[None]] = _refuse_records
    """Stores an audit entry that does not belong to a catalog change, such as a decision; returns after the commit."""
    settle: Callable[[TenantId], Awaitable[None]] = _settle_nothing
    """Waits briefly until the refusals that this replica has noted for a tenant are in its audit trail."""
    count_drift: Callable[[str], None] = _count_nothing
    """Counts a change by hand of an object that a set of manifests owns, given the kind of the object."""
    secret_stores: SecretStores = field(default_factory=SecretStores)
    """External secret stores that credentials may refer to."""
    key_sets: KeySets | None = None
    """The cached signing keys of issuers, on the replica that changes an issuer."""
    options: CatalogOptions = _DEFAULT_OPTIONS


@dataclass(slots=True, kw_only=True)
class CatalogChange:
    """The audit entry of a change; every member but `action` may be filled in while the change runs.

    `before` and `after` are the changed object as stored, for the entry's members of these names; an object that is
    created has no `before`, one that is deleted no `after`.
    """

    action: str
    target: str
    detail: dict[str, object] = field(default_factory=dict[str, object])
    before: object | None = None
    after: object | None = None
    is_installations: bool = False
    """True if the trail of the installation has a copy of the entry: only the operator makes such changes."""


class OpenChanges:
    """Changes of one tenant's objects in one transaction, which commit together."""

    def __init__(self, tenant: TenantId, catalog: CatalogContext, db: Db, by: Author) -> None:
        self.tenant = tenant
        self.catalog = catalog
        self.db = db
        self.by = by
        self.generated: dict[str, str] = {}
        """The secrets that the gateway generated, by the id of their object; they are shown once."""
        self.later: list[Callable[[], Awaitable[None]]] = []
        """Functions that run after the commit of the changes and their event, such as for another event."""
        self.revision: int | None = None
        """The revision of the last change; None before the first."""
        self.installation: CatalogMoved | None = None
        """The event of the last entry that was copied to the trail of the installation; None without one."""
        self.owner: OwningSet | None = None
        """The set of manifests that makes the changes; None for changes by hand."""
        self.origin: Mapping[str, object] = {}
        """Members of the detail of every audit entry, such as the commit of a manifest."""
        self.drifted: list[str] = []
        """The kind of each changed object that another set owns."""
        self._entry: CatalogChange | None = None

    def announce(self, *events: Event) -> None:
        """Publish these events after the commit and the event of the change."""
        self.later += [partial(announce, self.catalog, event) for event in events]

    async def lock(self) -> None:
        """Lock the tenant's row until the commit, so that what is read now is still valid at the change.

        Raises:
            NotFound: the tenant does not exist.
        """
        if self.tenant == INSTALLATION:
            await begin_installation(self.catalog, self.db)
        if await tenants.lock(self.tenant, self.db) is None:
            raise NotFound("no such tenant")

    def detail(self, name: str, value: object) -> None:
        """Add a member to the audit entry of the change that is being written."""
        if self._entry is not None:
            self._entry.detail[name] = value

    @asynccontextmanager
    async def one(self, entry: CatalogChange) -> AsyncGenerator[Db]:
        """Run the block as one of the changes: it has the next revision and an audit entry of its own.

        Raises:
            NotFound: the tenant does not exist.
            Conflict: another attempt at the same request has taken over.
        """
        self.revision = await advance(self.tenant, self.catalog, self.db)
        self._entry = entry
        yield self.db
        entry.detail |= self.origin
        await record(self.tenant, self.catalog, entry, db=self.db, by=self.by, revision=self.revision)
        if entry.is_installations:
            self.installation = await copy_to_installation(self.tenant, self.catalog, entry, db=self.db, by=self.by)


@asynccontextmanager
async def open_changes(tenant: TenantId, catalog: CatalogContext, *, by: Author) -> AsyncGenerator[OpenChanges]:
    """Open a transaction for changes. After its commit, one event is published if there was a change; see `later`."""
    async with catalog.store.transaction(tenant) as db:
        opened = OpenChanges(tenant, catalog, db, by)
        yield opened
    for kind in opened.drifted:
        catalog.count_drift(kind)
    if opened.revision is not None:
        await announce(catalog, CatalogMoved(tenant=tenant, revision=opened.revision))
    for follow in opened.later:
        await follow()
    if opened.installation is not None:
        await announce(catalog, opened.installation)


@asynccontextmanager
async def change(tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, by: Author) -> AsyncGenerator[Db]:
    """Run the block as one change. Its writes, the next revision and the audit entry commit together or not at all.

    The event is published after the commit.

    Raises:
        NotFound: the tenant does not exist.
        Conflict: another attempt at the same request has taken over.
    """
    async with open_changes(tenant, catalog, by=by) as opened, opened.one(entry) as db:
        yield db


async def record(
    tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, db: Db, by: Author, revision: int
) -> None:
    """Append the audit entry of a change to the transaction that makes it.

    Raises:
        Conflict: another attempt at the same request has taken over; nothing is committed.
    """
    if by.attempt is not None and not await idempotency.commit(tenant, db, by.attempt):  # guard: idempotency-fenced
        raise Conflict("the request took too long, and another replica repeated it; this attempt changed nothing")
    await _append(tenant, catalog, entry, db=db, by=by, revision=revision)


async def copy_to_installation(
    tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, db: Db, by: Author
) -> CatalogMoved:
    """Append a copy of an entry to the trail of the installation, in the transaction of the tenant's change.

    Return the event to publish after the commit. The row of the tenant is locked before that of the installation.
    """
    copied = replace(entry, detail={**entry.detail, "tenant": tenant})
    async with scoped(db, INSTALLATION, back_to=tenant):
        revision = await advance(INSTALLATION, catalog, db)
        await _append(INSTALLATION, catalog, copied, db=db, by=by, revision=revision)
    return CatalogMoved(tenant=INSTALLATION, revision=revision)


async def advance(tenant: TenantId, catalog: CatalogContext, db: Db) -> int:
    """Return the next revision of the tenant; the first change of the installation creates its row and its trail.

    Raises:
        NotFound: there is no such tenant.
    """
    if tenant == INSTALLATION:
        await begin_installation(catalog, db)
    return await tenants.advance(tenant, db)


async def begin_installation(catalog: CatalogContext, db: Db) -> None:
    """Create the row of the installation unless it exists, with the anchor and the first entry of its trail.

    The transaction is that of the installation.
    """
    if not await tenants.insert_installation(db):
        return
    await anchors.insert(INSTALLATION, db, key=catalog.sealer.derive(ANCHOR_PURPOSE), kind=AnchorKind.CREATED)
    by, entry = Author(caller=GATEWAY, correlation_id=""), CatalogChange(action=CREATION, target=INSTALLATION)
    await _append(INSTALLATION, catalog, entry, db=db, by=by, revision=1)


async def ensure_installation(catalog: CatalogContext) -> None:
    """Begin the trail of the installation unless it has begun, so that it can be read and verified."""
    async with catalog.store.transaction(INSTALLATION) as db:
        await begin_installation(catalog, db)


async def _append(
    tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, db: Db, by: Author, revision: int
) -> None:
    sides = await describe_change(entry.before, entry.after, key=catalog.chain_key)
    await entries.append_change(
        tenant,
        db,
        principal=by.caller.name,
        action=entry.action,
        target=entry.target,
        correlation_id=by.correlation_id,
        revision=revision,
        detail={**entry.detail, **sides, **detail_of(by)},
        chain_key=catalog.chain_key,
    )


def detail_of(by: Author) -> dict[str, object]:
    """The members that the detail of an audit entry has for an operator: its key, and the origin of its request."""
    caller, origin = by.caller, by.origin
    if isinstance(caller, Principal) and not caller.operator:
        return {}
    members: dict[str, object] = {}
    if key := caller.key:
        members["operator_key"] = key
    if origin is not None:
        members |= {"address": origin.address, "way": origin.way}
        if origin.client:
            members[CLAIMED_CLIENT] = origin.client
    return members


async def announce(catalog: CatalogContext, event: Event) -> None:
    """Publish an event to all replicas; a failure is only logged.

    If a catalog event is lost, replicas update later, when they compare revisions with PostgreSQL. A lost event about
    the content of a resource is not repeated.
    """
    try:
        with anyio.fail_after(PUBLISH_TIMEOUT_S):
            await catalog.publish(event)
    except (RedisUnavailable, TimeoutError):
        log.warning("event_lost", kind=type(event).__name__, tenant=event.tenant)
