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
from gateway.errors import NotFound, Unavailable
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
    is_suspect: bool = False
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

    def distrust(self) -> None:
        """Compare every revision with the database before it is shown again."""
        for entry in self._entries.values():
            entry.is_suspect = True

    def forget(self, tenant: TenantId) -> None:
        """Drop what is kept of a tenant."""
        self._entries.pop(tenant, None)

    async def _renew(self, tenant: TenantId, entry: _Entry) -> Snapshot:
        async with entry.loading:
            if (current := _current(entry)) is not None:
                return current
            snapshot = entry.snapshot
            try:
                fresh = await self._load(tenant, snapshot)
            except Unavailable:
                if snapshot is None or _age(entry) > _STALE_S:
                    raise
                log.warning("snapshot_kept_stale", tenant_id=tenant, revision=snapshot.revision)
                return snapshot
            except NotFound:
                self.forget(tenant)
                raise
            entry.snapshot, entry.checked_at, entry.is_suspect = fresh, time.monotonic(), False
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
    if snapshot is None or entry.is_suspect or snapshot.revision < entry.newest or _age(entry) >= _CHECK_S:
        return None
    return snapshot


def _age(entry: _Entry) -> float:
    return time.monotonic() - entry.checked_at
