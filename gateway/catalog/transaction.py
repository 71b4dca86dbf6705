"""What every change of a catalog has in common: one transaction with revision and audit entry, then the event.

A change takes the tenant's row first, so the changes of one tenant follow each other and what a change has checked
stays true until it commits.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import structlog

from gateway.catalog.snapshots.python_primitives import PythonPrimitives
from gateway.catalog.sources.document_workers import DocumentWorkers
from gateway.domain.events import CatalogMoved, Event
from gateway.domain.fairness.share import FairShare
from gateway.domain.idempotency import Attempt
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS
from gateway.domain.tenancy.policy import Limits
from gateway.domain.tenancy.principals import Caller
from gateway.errors import Conflict, RedisUnavailable
from gateway.store import idempotency, tenants
from gateway.store.audit import entries
from gateway.store.audit.outside_heads import OutsideHeads
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.upstream.client import UpstreamClient

log = structlog.get_logger(__name__)


_PUBLISH_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Author:
    """Who makes a change, and the request it came with."""

    caller: Caller
    correlation_id: str
    attempt: Attempt | None = None
    """Of a request with an `Idempotency-Key`: its changes commit only while the record is this attempt's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogContext:
    """What the verbs of the catalog work with; every member is opened by the app."""

    store: Store
    sealer: EnvelopeCipher
    upstream: UpstreamClient
    publish: Callable[[Event], Awaitable[None]]
    digest: Callable[[str], bytes]
    """What is stored of the text of an API key."""
    chain_key: bytes
    cursor_key: bytes
    environment: str = "live"
    document_limit: int = 32 * 1024 * 1024
    workers: DocumentWorkers = field(default_factory=DocumentWorkers)
    verifying: FairShare = field(default_factory=lambda: FairShare("verifications", places=2, queue=16, patience_s=60))
    """Who may verify an audit trail, which takes long when the trail is."""
    heads: OutsideHeads | None = None
    """Stores of audit heads outside the database."""
    code: PythonPrimitives | None = None
    """What code adds to tenants' catalogs."""
    ceilings: Limits = DEFAULT_CEILINGS
    """The ceilings of a tenant's limits where the operator has set none."""


@dataclass(slots=True, kw_only=True)
class CatalogChange:
    """What an audit entry says of a change; `target` and `detail` may be filled in while it is made."""

    action: str
    target: str
    detail: dict[str, object] = field(default_factory=dict[str, object])


@asynccontextmanager
async def change(tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, by: Author) -> AsyncGenerator[Db]:
    """One change of a tenant's catalog: all of the block, the next revision and the audit entry, or nothing.

    Raises:
        NotFound: the tenant is gone.
    """
    async with catalog.store.transaction(tenant) as db:
        revision = await tenants.advance(tenant, db)
        yield db
        await record(tenant, catalog, entry, db=db, by=by, revision=revision)
    await announce(catalog, CatalogMoved(tenant=tenant, revision=revision))


async def record(
    tenant: TenantId, catalog: CatalogContext, entry: CatalogChange, *, db: Db, by: Author, revision: int
) -> None:
    """Append the audit entry of a change to the transaction that makes it.

    Raises:
        Conflict: another attempt at the same request has taken over; nothing is committed.
    """
    if by.attempt is not None and not await idempotency.commit(tenant, db, by.attempt):
        raise Conflict("the request took too long and was begun again elsewhere; this attempt changed nothing")
    await entries.append_change(
        tenant,
        db,
        principal=by.caller.name,
        action=entry.action,
        target=entry.target,
        correlation_id=by.correlation_id,
        revision=revision,
        detail=entry.detail,
        chain_key=catalog.chain_key,
    )


async def announce(catalog: CatalogContext, event: Event) -> None:
    """Tell all replicas; an event that is lost costs time, never truth."""
    try:
        with anyio.fail_after(_PUBLISH_S):
            await catalog.publish(event)
    except (RedisUnavailable, TimeoutError):
        log.warning("event_lost", kind=type(event).__name__, tenant=event.tenant)
