"""One tenant's catalog at one revision, loaded once and shared by all its connections on this replica.

A snapshot is replaced whole, never changed. Events say that a newer revision exists; because events can be lost, the
revision is also compared with the database when the last comparison is some seconds old, together with those that will
have to be compared soon: a replica that shows many tenants asks once for all of them.
"""

import time
from collections import OrderedDict
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
"""At which share of that age a revision is compared together with another's."""

_STALE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tenant's catalog at one revision; never changes.

    Every family is sorted by name and holds what clients can have: what is stored and enabled, and what code adds.
    """

    tenant: TenantId
    revision: int
    policy: Policy
    """Its limits are those in force: never above their ceilings."""
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    slug: str = ""
    resources: tuple[Primitive, ...] = ()
    templates: tuple[Primitive, ...] = ()
    prompts: tuple[Primitive, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    code: int = 0
    """The generation of what code registered."""
    http_origins: frozenset[str] | None = None
    """The only origins that declared `http` handlers may call; None: any that the gateway may dial."""
    egress: AllowList = NOTHING
    """Private upstreams that the operator lets this tenant reach."""
    operations: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict[str, Mapping[str, Tool]])
    """The operations of every source, also of those that are only queried, by name of the source and each name."""

    queried: tuple[QueriedSource, ...] = ()
    """The sources that the query tools show, sorted by name."""
    unlisted: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Imported tools by name that handlers may call and clients may not."""
    renamed: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Imported tools by names that they had."""

    @property
    def order(self) -> tuple[int, int]:
        """Newer snapshots of a tenant are greater."""
        return self.revision, self.code

    def operation(self, source: str, key: str) -> Tool | None:
        """The operation of a source by its operationId, its `METHOD path` or its tool name."""
        return self.operations.get(source, {}).get(key)

    def called(self, old: str) -> Tool | None:
        """The imported tool that had this name, while it can still be called by it."""
        found = self.renamed.get(old)
        return None if found is None or found.until <= datetime.now(UTC) else found.tool


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

    @property
    def is_doubted(self) -> bool:
        """Whether a change may have been missed since the last comparison."""
        return self.doubts != self.doubts_at_check

    def hear(self, revision: int, *, asked_at: float, doubts: int) -> None:
        """What the database says is the newest revision, of when it was asked and what was doubted by then."""
        self.newest = max(self.newest, revision)
        if self.snapshot is not None and self.snapshot.revision == revision:
            self.checked_at = max(self.checked_at, asked_at)
            self.doubts_at_check = max(self.doubts_at_check, doubts)


class Snapshots:
    """The snapshots of this replica, one per tenant, least recently used dropped first."""

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
        self._capacity = capacity
        self._entries: OrderedDict[TenantId, _Entry] = OrderedDict()
        self._first_generation = self.generation
        self.loaded = 0

    def current(self, tenant: TenantId) -> Snapshot | None:
        """The newest snapshot there is reason to know of, if it is here."""
        entry = self._entries.get(tenant)
        if entry is None:
            return None
        self._entries.move_to_end(tenant)
        return _current(entry, self.generation)

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
        return _current(entry, self.generation) or await self._renew(tenant, entry)

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
        async with self._store.transaction(tenant, within_s=PROMPT_S) as db:
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
            if (current := _current(entry, self.generation)) is not None:
                return current
            if failures != entry.failures:  # it failed while we waited; the next to ask tries again
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
        """Hear what the newest revision is: the tenant's, and those of all that are doubted or not quite fresh.

        Raises:
            NotFound: the tenant is gone.
            Unavailable: the database cannot be asked.
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
            kept[known].hear(revision, asked_at=asked_at, doubts=doubts[known])

    async def _load(self, tenant: TenantId, *, is_kept: bool) -> Snapshot:
        code = self.generation  # before what it stands for: what is registered meanwhile is loaded again
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
        """True if registrations of code have changed since the snapshots were made."""
        return self.generation != self._first_generation

    @property
    def generation(self) -> int:
        """Number of changes to the registrations of code."""
        return 0 if self._code is None else self._code.generation


def _current(entry: _Entry, code: int) -> Snapshot | None:
    """The kept snapshot, if there is no reason to load another."""
    snapshot = entry.snapshot
    if snapshot is None or entry.is_doubted or snapshot.revision < entry.newest or _age(entry) >= _CHECK_S:
        return None
    return snapshot if snapshot.code == code else None


def _kept(tenant: TenantId, entry: _Entry, error: Unavailable) -> Snapshot:
    """The kept snapshot while the database is away; the error when there is none or it is too old."""
    snapshot = entry.snapshot
    if snapshot is None or _age(entry) > _STALE_S:
        raise error
    log.warning("snapshot_kept_stale", tenant_id=tenant, revision=snapshot.revision)
    return snapshot


def _age(entry: _Entry) -> float:
    return time.monotonic() - entry.checked_at
