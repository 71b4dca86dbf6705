"""Views of snapshots; a registry binds a view to a principal and a profile.

A view contains the bound primitives and lists of its snapshot; all registries of the snapshot share the view.
"""

from functools import cached_property
from typing import Any

import msgspec

from gateway.catalog.snapshots.live_primitives import is_selected, unlisted_resource
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import KeyId, LiveSourceId, TenantId
from gateway.domain.listed.definition import with_listed_arguments
from gateway.domain.listed.schema import listed_schema
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.tools import Tool
from gateway.handlers.binding import Binder, BoundResource
from gateway.handlers.python.registry import PythonHandlers
from gateway.registry.bindings import Bindings
from gateway.registry.limits import MAX_CACHED_CALLERS, MAX_RESTRICTED
from gateway.registry.paging import DEFAULT_LIMITS, PageLimits
from gateway.registry.visibility import VisiblePrimitives

_CallerFacts = tuple[KeyId, str, bool, bytes | None, bytes | None]


class SnapshotView:
    """A snapshot, its bound primitives, and the lists of each profile; each part is built on first use."""

    def __init__(
        self,
        snapshot: Snapshot,
        binder: Binder,
        code: PythonHandlers | None,
        previous: "SnapshotView | None" = None,
        *,
        limits: PageLimits = DEFAULT_LIMITS,
    ) -> None:
        self.snapshot = snapshot
        self._limits = limits
        self._binder = binder
        self._code = code
        self._has_profile_rules = any(rule.profile is not None for rule in snapshot.policy.rules)
        older = {} if previous is None else previous.bindings
        profiles = {DEFAULT_PROFILE, *older} if self._has_profile_rules else {DEFAULT_PROFILE}
        self.bindings: dict[str, Bindings] = {
            profile: Bindings(snapshot, binder, older.get(profile), profile=profile) for profile in profiles
        }
        self._bound = self.bindings[DEFAULT_PROFILE]
        self._shown: dict[str, VisiblePrimitives] = {}
        self._is_open = snapshot.access.is_trivial
        self._rules = BoundedCache[_CallerFacts, int](MAX_CACHED_CALLERS)
        self._restricted = BoundedCache[tuple[str, int], VisiblePrimitives](MAX_RESTRICTED)
        self._mirrored: dict[str, dict[str, Any] | None] = {}

    @property
    def compiled_count(self) -> int:
        """Number of primitives that are bound so far."""
        return sum(len(bindings) for bindings in self.bindings.values())

    def bound(self, profile: str) -> Bindings:
        """The bound primitives of a profile: one set for all profiles, unless the policy has rules for one."""
        if not self._has_profile_rules:
            return self._bound
        found = self.bindings.get(profile)  # guard: policy-profile
        if found is None:
            found = self.bindings[profile] = Bindings(self.snapshot, self._binder, profile=profile)
        return found

    def has_profile(self, name: str) -> bool:
        """True if the tenant has a profile of this name."""
        return name == DEFAULT_PROFILE or name in self.snapshot.profiles

    def shown(self, profile: str, principal: Principal) -> VisiblePrimitives:
        """The primitives that the profile shows to a caller; empty if the tenant has no such profile.

        Callers to whom the same access rules apply share the result.
        """
        if not self._is_open:  # guard: access-gate
            rules = self.rules_for(principal)
            if not self.snapshot.access.hides_nothing(rules):
                return self._show_restricted(profile, rules)
        found = self._shown.get(profile)
        if found is None:
            found = self._shown[profile] = self._show(profile)
        return found

    @cached_property
    def whole(self) -> VisiblePrimitives:
        """All primitives of the snapshot, regardless of profiles and access rules."""
        return VisiblePrimitives(self.snapshot, self._code)

    def bind_result(self, uri: str) -> BoundResource:
        """Return the resource of a stored result."""
        return self._binder.bind_result(self.snapshot, uri)

    def linked_resource(self, uri: str, source: LiveSourceId) -> Primitive | None:
        """The resource of a live source at this URI, whether or not the source lists it; None without the source."""
        declared = self.snapshot.live_sources.get(source)
        return None if declared is None or not is_selected(declared, uri) else unlisted_resource(declared, uri)

    async def bind_linked(self, resource: Primitive, profile: str) -> BoundResource:
        """Return a resource that no list contains, bound to its live source."""
        return await self._binder.bind_resource(self.snapshot, resource, profile)

    def rules_for(self, principal: Principal) -> int:
        """The set of access rules that apply to a caller, cached by the attributes that rules test."""
        claims = principal.packed_groups, principal.packed_scopes  # guard: access-facts, access-scope-facts
        tested = principal.key, principal.subject, principal.is_person, *claims
        found = self._rules.get(tested)
        if found is None:
            found = self._rules[tested] = self.snapshot.access.rules_for(principal)
        return found

    def mirrored_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool that mirrors arguments into headers (`x-mcp-header`); None for all others."""
        stored = self.snapshot.names.stored(name) or name
        if stored not in self._mirrored:
            tool = self.snapshot.by_name.get(stored) or self.snapshot.called(stored)
            if tool is None:
                return None
            mirrors = b'"x-mcp-header"' in tool.definition
            self._mirrored[stored] = _schema_of(tool.definition) if mirrors else None
        return self._mirrored[stored]

    def _show_restricted(self, profile: str, rules: int) -> VisiblePrimitives:
        found = self._restricted.get((profile, rules))
        if found is None:
            found = self._restricted[profile, rules] = self._show(profile, rules)
        return found

    def _show(self, profile: str, rules: int | None = None) -> VisiblePrimitives:
        selection = None
        if profile != DEFAULT_PROFILE:
            known = self.snapshot.profiles.get(profile)
            selection = _shows_nothing if known is None else compile_selection(known)
        return VisiblePrimitives(
            self.snapshot, self._code, selection, profile=profile, rules=rules, limits=self._limits
        )


class ViewCache:
    """The views of this replica: one per tenant, replaced by newer snapshots, at most `capacity`."""

    def __init__(
        self,
        binder: Binder,
        *,
        code: PythonHandlers | None = None,
        capacity: int = 256,
        limits: PageLimits = DEFAULT_LIMITS,
    ) -> None:
        self._binder = binder
        self._limits = limits
        self._code = code
        self._views = BoundedCache[TenantId, SnapshotView](capacity)

    def of(self, snapshot: Snapshot) -> SnapshotView:
        """Return the cached view of this snapshot, or a new one; a view older than the cached one is not cached."""
        found = self._views.get(snapshot.tenant)
        if found is not None and found.snapshot is snapshot:
            return found
        if found is not None and found.snapshot.order > snapshot.order:
            return SnapshotView(snapshot, self._binder, self._code, limits=self._limits)
        made = SnapshotView(snapshot, self._binder, self._code, found, limits=self._limits)
        self._views[snapshot.tenant] = made
        self._views.move_to_end(snapshot.tenant)
        return made

    def forget(self, tenant: TenantId) -> None:
        """Drop the view of a tenant."""
        self._views.pop(tenant, None)


def _schema_of(definition: bytes) -> dict[str, Any] | None:
    """The listed input schema of a stored definition; None if it is unreadable."""
    try:
        stored = msgspec.json.decode(definition, type=_SchemaDefinition).input_schema
    except msgspec.MsgspecError:
        return None
    return with_listed_arguments(listed_schema(stored))


class _SchemaDefinition(msgspec.Struct, rename="camel"):
    input_schema: dict[str, Any]


def _shows_nothing(_: Tool | Primitive) -> bool:
    return False
