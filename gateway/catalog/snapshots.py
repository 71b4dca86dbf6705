"""One tenant's catalog at one revision, loaded once and shared by all its connections on this replica.

A snapshot is replaced whole, never changed. Events say that a newer revision exists; because events can be lost, the
revision is also compared with the database when the last comparison is some seconds old.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio
import structlog

from gateway.domain.identifiers import TenantId
from gateway.domain.policy import Policy
from gateway.domain.tools import Tool
from gateway.errors import DatabaseUnavailable, NotFound, Unavailable
from gateway.store import operations, policies, tenants
from gateway.store.engine import Store

log = structlog.get_logger(__name__)

_CHECK_S = 5.0
_STALE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tenant's catalog at one revision; never changes."""

    tenant: TenantId
    revision: int
    policy: Policy
    tools: tuple[Tool, ...]
    """Sorted by name."""
    by_name: Mapping[str, Tool]


@dataclass(slots=True)
class _Entry:
    """What is kept of one tenant: the snapshot, the newest revision heard of, and who loads."""

    snapshot: Snapshot | None = None
    newest: int = 0
    checked_at: float = 0.0
    doubts: int = 0
    doubts_at_check: int = 0
    failures: int = 0
    loading: anyio.Lock = field(default_factory=anyio.Lock)


class Snapshots:
    """The snapshots of this replica, one per tenant, least recently used dropped first."""

    def __init__(self, store: Store, *, capacity: int = 256) -> None:
        self._store = store
        self._capacity = capacity
        self._entries: OrderedDict[TenantId, _Entry] = OrderedDict()

    async def latest(self, tenant: TenantId) -> Snapshot:
        """The newest snapshot there is reason to know of.

        Raises:
            NotFound: the tenant is gone.
            Unavailable: the database is away and what is kept is too old to go on with.
        """
        entry = self._entries.get(tenant)
        if entry is None:
            entry = self._entries[tenant] = _Entry()
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
        else:
            self._entries.move_to_end(tenant)
        return _current(entry) or await self._renew(tenant, entry)

    def note(self, tenant: TenantId, revision: int) -> None:
        """A revision of the tenant's catalog was heard of; older ones are ignored."""
        entry = self._entries.get(tenant)
        if entry is not None and revision > entry.newest:
            entry.newest = revision

    def newest(self, tenant: TenantId) -> int:
        """The newest revision heard of; 0 without any."""
        entry = self._entries.get(tenant)
        return 0 if entry is None else entry.newest

    async def reread(self, tenant: TenantId) -> int:
        """The revision that the database has now.

        Raises:
            NotFound: the tenant is gone.
            Unavailable: the database cannot be asked.
        """
        async with self._store.transaction(tenant) as db:
            revision = await tenants.revision(tenant, db)
        if revision is None:
            self.forget(tenant)
            raise NotFound("no such tenant")
        self.note(tenant, revision)
        return revision

    def distrust(self) -> None:
        """Compare every revision with the database before it is shown again."""
        for entry in self._entries.values():
            entry.doubts += 1

    def forget(self, tenant: TenantId) -> None:
        """Drop what is kept of a tenant."""
        self._entries.pop(tenant, None)

    async def _renew(self, tenant: TenantId, entry: _Entry) -> Snapshot:
        failures = entry.failures
        async with entry.loading:
            if (current := _current(entry)) is not None:
                return current
            if failures != entry.failures:  # it failed while we waited; the next to ask tries again
                return _kept(tenant, entry, DatabaseUnavailable("the catalog cannot be read now"))
            asked_at, doubts = time.monotonic(), entry.doubts
            try:
                fresh = await self._load(tenant, entry.snapshot)
            except Unavailable as error:
                entry.failures += 1
                return _kept(tenant, entry, error)
            except NotFound:
                self.forget(tenant)
                raise
            entry.snapshot, entry.checked_at, entry.doubts_at_check = fresh, asked_at, doubts
            entry.newest = max(entry.newest, fresh.revision)
            return fresh

    async def _load(self, tenant: TenantId, known: Snapshot | None) -> Snapshot:
        async with self._store.transaction(tenant) as db:
            revision = await tenants.revision(tenant, db)
            if revision is None:
                raise NotFound("no such tenant")
            if known is not None and known.revision == revision:
                return known
            tools = tuple(await operations.tools(tenant, db))
            policy = await policies.get(tenant, db)
        log.info("snapshot_loaded", tenant_id=tenant, revision=revision, tools=len(tools))
        return Snapshot(
            tenant=tenant, revision=revision, policy=policy, tools=tools, by_name={tool.name: tool for tool in tools}
        )


def _current(entry: _Entry) -> Snapshot | None:
    """The kept snapshot, if there is no reason to ask the database."""
    snapshot = entry.snapshot
    is_doubted = entry.doubts != entry.doubts_at_check
    if snapshot is None or is_doubted or snapshot.revision < entry.newest or _age(entry) >= _CHECK_S:
        return None
    return snapshot


def _kept(tenant: TenantId, entry: _Entry, error: Unavailable) -> Snapshot:
    """The kept snapshot while the database is away; the error when there is none or it is too old."""
    snapshot = entry.snapshot
    if snapshot is None or _age(entry) > _STALE_S:
        raise error
    log.warning("snapshot_kept_stale", tenant_id=tenant, revision=snapshot.revision)
    return snapshot


def _age(entry: _Entry) -> float:
    return time.monotonic() - entry.checked_at
