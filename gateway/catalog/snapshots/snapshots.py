"""Snapshots: one tenant's catalog at one revision, loaded once and shared by all its connections on this replica.

A snapshot is replaced as a unit, never changed. Events announce newer revisions. Because events can be lost, a revision
is also compared with the database before its use if the last comparison is 5 s old. One query compares all revisions
that are due now or soon, so a replica with many tenants does not query once per tenant.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio
import structlog

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.snapshots.access_coverage import with_access
from gateway.catalog.snapshots.composition import compose, index_old_names
from gateway.catalog.snapshots.limits import CHECK_S, STALE_S
from gateway.catalog.snapshots.live_primitives import LiveOffer, page_tools_of, schemes_of
from gateway.catalog.snapshots.python_primitives import PythonPrimitives, primitives_for
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.thread_kinds import SNAPSHOT_LOADS
from gateway.domain.fairness.threads import run_in_thread
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.live_sources import LiveSource, LiveStatus
from gateway.domain.overrides import LoadedOperation
from gateway.domain.queries import QueriedKind, QueriedSource
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.access import OPEN
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS
from gateway.domain.tenancy.policy import Limits
from gateway.errors import DatabaseUnavailable, NotFound, Unavailable
from gateway.store import operations, primitives, tenants, tool_aliases
from gateway.store.database.limits import PROMPT_S
from gateway.store.engine import Db, Store
from gateway.store.kinds.guardrails import GUARDRAILS
from gateway.store.kinds.profiles import PROFILES
from gateway.store.kinds.singletons import ACCESS, EGRESS
from gateway.store.kinds.tenants import TENANTS
from gateway.store.live import live_primitives, live_sources
from gateway.store.sources import sources
from gateway.upstream.egress.allow_list import read_stored

log = structlog.get_logger(__name__)

_PREFETCH_SHARE = 0.5
"""The query also compares every other revision whose last comparison is older than this fraction of `CHECK_S`."""


@dataclass(slots=True)
class _Entry:
    """The state of one tenant: its snapshot, the newest known revision, and a lock for loading."""

    snapshot: Snapshot | None = None
    newest: int = 0
    checked_at: float = 0.0
    invalidations: int = 0
    invalidations_at_check: int = 0
    failures: int = 0
    loading: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_invalidated(self) -> bool:
        """True if a change may have been missed since the last comparison."""
        return self.invalidations != self.invalidations_at_check

    def record_revision(self, revision: int, *, asked_at: float, invalidations: int) -> None:
        """Record the revision read from the database.

        If the snapshot has this revision, its last comparison is set to `asked_at`, and earlier invalidations are
        cleared.
        """
        self.newest = max(self.newest, revision)
        if self.snapshot is not None and self.snapshot.revision == revision:
            self.checked_at = max(self.checked_at, asked_at)
            self.invalidations_at_check = max(self.invalidations_at_check, invalidations)


class Snapshots:
    """The snapshots of this replica, one per tenant; the least recently used are dropped first."""

    def __init__(
        self,
        store: Store,
        *,
        code: PythonPrimitives | None = None,
        capacity: int = 256,
        ceilings: Limits = DEFAULT_CEILINGS,
    ) -> None:
        self._store = store
        self._ceilings = ceilings
        self._code = code
        self._entries = BoundedCache[TenantId, _Entry](capacity)
        self._first_generation = self.generation
        self.loaded = 0

    def current(self, tenant: TenantId) -> Snapshot | None:
        """The tenant's snapshot if it is current; None if it must be loaded or compared first."""
        entry = self._entries.get(tenant)
        if entry is None:
            return None
        self._entries.move_to_end(tenant)
        return _current(entry, self.generation)

    async def latest(self, tenant: TenantId) -> Snapshot:
        """The current snapshot; loaded, or compared with the database, if necessary.

        Raises:
            NotFound: the tenant does not exist.
            Unavailable: the database is unreachable, and there is no snapshot or its last comparison is over 60 s old.
        """
        entry = self._entries.get(tenant)
        if entry is None:
            entry = self._entries[tenant] = _Entry()
        else:
            self._entries.move_to_end(tenant)
        return _current(entry, self.generation) or await self._renew(tenant, entry)

    def note(self, tenant: TenantId, revision: int) -> None:
        """Record a revision of the tenant's catalog, if it is newer and this replica has an entry for the tenant."""
        entry = self._entries.get(tenant)
        if entry is not None and revision > entry.newest:
            entry.newest = revision

    def newest(self, tenant: TenantId) -> int:
        """The newest known revision; 0 if none is known."""
        entry = self._entries.get(tenant)
        return 0 if entry is None else entry.newest

    async def reload_revision(self, tenant: TenantId) -> int:
        """Read the current revision from the database and record it.

        Raises:
            NotFound: the tenant does not exist.
            Unavailable: the database does not respond.
        """
        async with self._store.transaction(tenant, within_s=PROMPT_S) as db:
            revision = await tenants.revision(tenant, db)
        if revision is None:
            self.forget(tenant)
            raise NotFound("no such tenant")
        self.note(tenant, revision)
        return revision

    def invalidate_all(self) -> None:
        """Require a comparison of every revision with the database before its next use."""
        for entry in self._entries.values():
            entry.invalidations += 1

    def forget(self, tenant: TenantId) -> None:
        """Drop the state of a tenant."""
        self._entries.pop(tenant, None)

    async def _renew(self, tenant: TenantId, entry: _Entry) -> Snapshot:
        failures = entry.failures
        async with entry.loading:
            if (current := _current(entry, self.generation)) is not None:
                return current
            if failures != entry.failures:  # a load failed while this task waited; the next request tries again
                return _stale_snapshot(tenant, entry, DatabaseUnavailable("the catalog is not available; retry later"))
            asked_at, invalidations = time.monotonic(), entry.invalidations
            try:
                if entry.snapshot is not None and entry.snapshot.revision >= entry.newest:
                    await self._compare(tenant, entry)
                    if (current := _current(entry, self.generation)) is not None:
                        return current
                loaded = await self._load(tenant, is_kept=entry.snapshot is not None)
            except Unavailable as error:
                entry.failures += 1
                return _stale_snapshot(tenant, entry, error)
            except NotFound:
                self.forget(tenant)
                raise
            entry.snapshot, entry.checked_at, entry.invalidations_at_check = loaded, asked_at, invalidations
            entry.newest = max(entry.newest, loaded.revision)
            return loaded

    async def _compare(self, tenant: TenantId, entry: _Entry) -> None:
        """Read the newest revisions of the tenant and of all tenants that are invalidated or due soon.

        Raises:
            NotFound: the tenant does not exist.
            Unavailable: the database does not respond.
        """
        asked_at, soon = time.monotonic(), CHECK_S * _PREFETCH_SHARE
        due_entries = {
            known: other for known, other in self._entries.items() if other.is_invalidated or _age(other) >= soon
        }
        due_entries[tenant] = entry
        invalidations = {known: other.invalidations for known, other in due_entries.items()}
        async with self._store.lookup(within_s=PROMPT_S) as db:
            found = await tenants.revisions(db, invalidations)
        if tenant not in found:
            raise NotFound("no such tenant")
        for known, revision in found.items():
            due_entries[known].record_revision(revision, asked_at=asked_at, invalidations=invalidations[known])

    async def _load(self, tenant: TenantId, *, is_kept: bool) -> Snapshot:
        code = self.generation  # read before the primitives: a registration during the load causes another load
        async with self._store.reading(tenant, within_s=PROMPT_S if is_kept else None) as db:
            found = await TENANTS.get(tenant, db, tenant)
            if found is None:
                raise NotFound("no such tenant")
            policy = await policy_in_force(tenant, db, self._ceilings)
            allowed = await EGRESS.get(tenant, db)
            chain = await GUARDRAILS.load(tenant, db)
            imported = await operations.load(tenant, db)
            own = await primitives.load(tenant, db)
            selections = await PROFILES.load(tenant, db)
            queried = await sources.queried(tenant, db)
            old_names = await tool_aliases.active(tenant, db)
            offer = await load_offer(tenant, db)
            access = await ACCESS.get(tenant, db)
        added = primitives_for(self._code, found.slug)
        composing = partial(compose, imported, own, added, with_queries=bool(queried), aliases=old_names, offer=offer)
        composed = await run_in_thread(SNAPSHOT_LOADS, tenant, composing)
        for primitive in composed.hidden:
            log.warning("code_primitive_hidden", tenant_id=tenant, family=primitive.family, name=primitive.name)
        self.loaded += 1
        log.info("snapshot_loaded", tenant_id=tenant, revision=found.revision, code=code, tools=len(composed.tools))
        loaded = Snapshot(
            tenant=tenant,
            revision=found.revision,
            policy=policy,
            tools=composed.tools,
            by_name={tool.name: tool for tool in composed.tools},
            slug=found.slug,
            resources=composed.resources,
            templates=composed.templates,
            prompts=composed.prompts,
            profiles={profile.name: profile for profile in selections},
            code=code,
            http_origins=None if policy.http_origins is None else frozenset(policy.http_origins),
            guardrails=tuple(chain),
            egress=read_stored(allowed.allow),
            operations=composed.operations,
            queried=(*queried, *queried_listed(imported, queried), *_queried_live(offer.sources)),
            queried_live=composed.queried_live,
            names=composed.names,
            unlisted=composed.unlisted,
            renamed=composed.renamed,
            old_names=index_old_names(composed.renamed),
            live_sources={one.id: _declared(one) for one in offer.sources},
            live_schemes=schemes_of(offer),
            page_tools=page_tools_of(offer),
        )
        return loaded if access == OPEN else await run_in_thread(SNAPSHOT_LOADS, tenant, with_access, loaded, access)

    @property
    def has_new_code(self) -> bool:
        """True if the Python registrations have changed since this object was made."""
        return self.generation != self._first_generation

    @property
    def generation(self) -> int:
        """Number of changes to the Python registrations."""
        return 0 if self._code is None else self._code.generation


async def load_offer(tenant: TenantId, db: Db) -> LiveOffer:
    """The enabled live sources of the tenant, and their remembered primitives."""
    enabled = await live_sources.load_enabled(tenant, db)
    return LiveOffer(sources=enabled, found=await live_primitives.load(tenant, db) if enabled else {})


def queried_listed(imported: Sequence[LoadedOperation], queried: Sequence[QueriedSource]) -> Sequence[QueriedSource]:
    """The sources that are not exposed to the query tools and have tools that list a shortened input schema."""
    known = {source.id for source in queried}
    shortened = {one.tool.source: one.tool.source_name for one in imported if one.is_listed and one.tool.is_shortened}
    return [
        QueriedSource(id=source, name=name, version=0, kind=QueriedKind.LISTED)
        for source, name in shortened.items()
        if source not in known
    ]


def _queried_live(found: Sequence[LiveSource]) -> Sequence[QueriedSource]:
    exposed = (one for one in found if one.expose is not Exposure.TOOLS)
    return [
        QueriedSource(id=SourceId(one.id), name=one.name, version=one.version, kind=QueriedKind.LIVE) for one in exposed
    ]


def _declared(source: LiveSource) -> LiveSource:
    return replace(source, status=LiveStatus(can_subscribe=source.status.can_subscribe))


def _current(entry: _Entry, code: int) -> Snapshot | None:
    """The cached snapshot; None if it must be loaded or compared first."""
    snapshot = entry.snapshot
    if snapshot is None or entry.is_invalidated or snapshot.revision < entry.newest or _age(entry) >= CHECK_S:
        return None
    return snapshot if snapshot.code == code else None


def _stale_snapshot(tenant: TenantId, entry: _Entry, error: Unavailable) -> Snapshot:
    """Return the stale snapshot while the database is unreachable.

    Raises `error` if there is none or its last comparison is over 60 s old.
    """
    snapshot = entry.snapshot
    if snapshot is None or _age(entry) > STALE_S:
        raise error
    log.warning("snapshot_kept_stale", tenant_id=tenant, revision=snapshot.revision)
    return snapshot


def _age(entry: _Entry) -> float:
    return time.monotonic() - entry.checked_at
