"""Snapshots: one tenant's catalog at one revision, loaded once and shared by all its connections on this replica.

A snapshot is replaced whole, never changed. Events announce newer revisions. Because events can be lost, a revision is
also compared with the database before its use if the last comparison is 5 s old. One query compares all revisions that
are due now or soon, so a replica with many tenants does not query once per tenant.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import anyio
import anyio.to_thread
import structlog

from gateway.catalog.ceilings import policy_in_force
from gateway.catalog.snapshots.composition import Renamed, compose
from gateway.catalog.snapshots.python_primitives import PythonPrimitives, primitives_for
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Primitive
from gateway.domain.queries import QueriedSource
from gateway.domain.tenancy.ceilings import DEFAULT_CEILINGS
from gateway.domain.tenancy.policy import Limits, Policy
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tools import Tool
from gateway.errors import DatabaseUnavailable, NotFound, Unavailable
from gateway.store import egress, operations, primitives, profiles, sources, tenants, tool_aliases
from gateway.store.database.circuit_breaker import PROMPT_S
from gateway.store.engine import Store
from gateway.upstream.egress.allow_list import NOTHING, AllowList, read_stored

log = structlog.get_logger(__name__)

_CHECK_S = 5.0
_TAKEN_ALONG = 0.5
"""Fraction of `_CHECK_S`: revisions of this age are compared in the same query as another tenant's."""

_STALE_S = 60.0
"""Age of the last comparison up to which a snapshot stays in use while the database is unreachable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tenant's catalog at one revision; immutable.

    Each family is sorted by name and contains the effective primitives: enabled stored ones, Python primitives that no
    name hides, and among the tools the query tools.
    """

    tenant: TenantId
    revision: int
    policy: Policy
    """The policy with its limits capped by their ceilings."""
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    slug: str = ""
    resources: tuple[Primitive, ...] = ()
    templates: tuple[Primitive, ...] = ()
    prompts: tuple[Primitive, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    code: int = 0
    """Generation of the Python primitives."""
    http_origins: frozenset[str] | None = None
    """The only origins that declared `http` handlers may call; None allows all origins that the gateway may dial."""
    egress: AllowList = NOTHING
    """Private upstreams that the operator lets this tenant reach."""
    operations: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict[str, Mapping[str, Tool]])
    """Enabled operations of all sources, query-only sources included, by source name, then by each of their names."""

    queried: tuple[QueriedSource, ...] = ()
    """The sources that the query tools show, sorted by name."""
    unlisted: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Imported tools by name that handlers may call and clients may not."""
    renamed: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Imported tools by their old names."""

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: newer snapshots of a tenant are greater."""
        return self.revision, self.code

    def operation(self, source: str, key: str) -> Tool | None:
        """The operation of a source by its operationId, its `METHOD path`, its tool name or an old tool name."""
        return self.operations.get(source, {}).get(key)

    def called(self, old: str) -> Tool | None:
        """The imported tool that had this old name; None once the name has expired."""
        found = self.renamed.get(old)
        return None if found is None or found.until <= datetime.now(UTC) else found.tool  # guard: old-name-ends


@dataclass(slots=True)
class _Entry:
    """The state of one tenant: its snapshot, the newest known revision, and a lock for loading."""

    snapshot: Snapshot | None = None
    newest: int = 0
    checked_at: float = 0.0
    doubts: int = 0
    doubts_at_check: int = 0
    failures: int = 0
    loading: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def is_doubted(self) -> bool:
        """True if a change may have been missed since the last comparison."""
        return self.doubts != self.doubts_at_check

    def note_revision(self, revision: int, *, asked_at: float, doubts: int) -> None:
        """Note the revision in the database. If it is the snapshot's, note also the query's time and settled doubts."""
        self.newest = max(self.newest, revision)
        if self.snapshot is not None and self.snapshot.revision == revision:
            self.checked_at = max(self.checked_at, asked_at)
            self.doubts_at_check = max(self.doubts_at_check, doubts)


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
        """The tenant's snapshot if it is current; None if it has to be loaded or compared first."""
        entry = self._entries.get(tenant)
        if entry is None:
            return None
        self._entries.move_to_end(tenant)
        return _current(entry, self.generation)

    async def latest(self, tenant: TenantId) -> Snapshot:
        """The current snapshot, compared with the database or loaded first if that is due.

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
        """Note a revision of the tenant's catalog, if it is newer and this replica has an entry for the tenant."""
        entry = self._entries.get(tenant)
        if entry is not None and revision > entry.newest:
            entry.newest = revision

    def newest(self, tenant: TenantId) -> int:
        """The newest known revision; 0 if none is known."""
        entry = self._entries.get(tenant)
        return 0 if entry is None else entry.newest

    async def reread(self, tenant: TenantId) -> int:
        """Read the current revision from the database, and note it.

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
            entry.doubts += 1

    def forget(self, tenant: TenantId) -> None:
        """Drop the state of a tenant."""
        self._entries.pop(tenant, None)

    async def _renew(self, tenant: TenantId, entry: _Entry) -> Snapshot:
        failures = entry.failures
        async with entry.loading:
            if (current := _current(entry, self.generation)) is not None:
                return current
            if failures != entry.failures:  # a load failed while this task waited; the next request tries again
                return _kept(tenant, entry, DatabaseUnavailable("the catalog cannot be read now"))
            asked_at, doubts = time.monotonic(), entry.doubts
            try:
                if entry.snapshot is not None and entry.snapshot.revision >= entry.newest:
                    await self._compare(tenant, entry)
                    if (current := _current(entry, self.generation)) is not None:
                        return current
                fresh = await self._load(tenant, is_kept=entry.snapshot is not None)
            except Unavailable as error:
                entry.failures += 1
                return _kept(tenant, entry, error)
            except NotFound:
                self.forget(tenant)
                raise
            entry.snapshot, entry.checked_at, entry.doubts_at_check = fresh, asked_at, doubts
            entry.newest = max(entry.newest, fresh.revision)
            return fresh

    async def _compare(self, tenant: TenantId, entry: _Entry) -> None:
        """Read the newest revisions of the tenant and of all tenants that are doubted or due soon.

        Raises:
            NotFound: the tenant does not exist.
            Unavailable: the database does not respond.
        """
        asked_at, soon = time.monotonic(), _CHECK_S * _TAKEN_ALONG
        kept = {known: other for known, other in self._entries.items() if other.is_doubted or _age(other) >= soon}
        kept[tenant] = entry
        doubts = {known: other.doubts for known, other in kept.items()}
        async with self._store.unscoped(within_s=PROMPT_S) as db:
            found = await tenants.revisions(db, doubts)
        if tenant not in found:
            raise NotFound("no such tenant")
        for known, revision in found.items():
            kept[known].note_revision(revision, asked_at=asked_at, doubts=doubts[known])

    async def _load(self, tenant: TenantId, *, is_kept: bool) -> Snapshot:
        code = self.generation  # read before the primitives: a registration during the load causes another load
        async with self._store.reading(tenant, within_s=PROMPT_S if is_kept else None) as db:
            revision = await tenants.revision(tenant, db)
            if revision is None:
                raise NotFound("no such tenant")
            found = await tenants.get(tenant, db)
            policy = await policy_in_force(tenant, db, self._ceilings)
            allowed = await egress.get(tenant, db)
            imported = await operations.load(tenant, db)
            own = await primitives.load(tenant, db)
            selections = await profiles.load(tenant, db)
            queried = await sources.queried(tenant, db)
            old_names = await tool_aliases.active(tenant, db)
        slug = "" if found is None else found.slug
        added = primitives_for(self._code, slug)
        composing = partial(compose, imported, own, added, with_queries=bool(queried), aliases=old_names)
        composed = await anyio.to_thread.run_sync(composing)
        for primitive in composed.hidden:
            log.warning("code_primitive_hidden", tenant_id=tenant, family=primitive.family, name=primitive.name)
        self.loaded += 1
        log.info("snapshot_loaded", tenant_id=tenant, revision=revision, code=code, tools=len(composed.tools))
        return Snapshot(
            tenant=tenant,
            revision=revision,
            policy=policy,
            tools=composed.tools,
            by_name={tool.name: tool for tool in composed.tools},
            slug=slug,
            resources=composed.resources,
            templates=composed.templates,
            prompts=composed.prompts,
            profiles={profile.name: profile for profile in selections},
            code=code,
            http_origins=None if policy.http_origins is None else frozenset(policy.http_origins),
            egress=read_stored(allowed.allow),
            operations=composed.operations,
            queried=tuple(queried),
            unlisted=composed.unlisted,
            renamed=composed.renamed,
        )

    @property
    def has_new_code(self) -> bool:
        """True if the Python registrations have changed since this object was made."""
        return self.generation != self._first_generation

    @property
    def generation(self) -> int:
        """Number of changes to the Python registrations."""
        return 0 if self._code is None else self._code.generation


def _current(entry: _Entry, code: int) -> Snapshot | None:
    """The kept snapshot; None if it has to be loaded or compared first."""
    snapshot = entry.snapshot
    if snapshot is None or entry.is_doubted or snapshot.revision < entry.newest or _age(entry) >= _CHECK_S:
        return None
    return snapshot if snapshot.code == code else None


def _kept(tenant: TenantId, entry: _Entry, error: Unavailable) -> Snapshot:
    """The snapshot to use while the database is unreachable; raises the error without one, or if it is too old."""
    snapshot = entry.snapshot
    if snapshot is None or _age(entry) > _STALE_S:
        raise error
    log.warning("snapshot_kept_stale", tenant_id=tenant, revision=snapshot.revision)
    return snapshot


def _age(entry: _Entry) -> float:
    return time.monotonic() - entry.checked_at
