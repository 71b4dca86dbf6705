"""Followers of the tenants' catalogs on this replica; each has its last registry and a listener for newer ones."""

from collections.abc import Callable, Collection, Iterator

import structlog
from msgspec.structs import replace

from gateway.catalog.snapshots.snapshots import Snapshot
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView

log = structlog.get_logger(__name__)

Listener = Callable[[Registry, Registry | None], None]
"""Called with the previous and the new registry; the new one is None if the tenant is gone or the key invalid."""


class Subscriber:
    """One client that follows a catalog, and the last registry that it adopted."""

    __slots__ = ("_listener", "registry")

    def __init__(self, shown: Registry, listener: Listener) -> None:
        self.registry = shown
        self._listener = listener

    def adopt(self, view: SnapshotView) -> None:
        """Switch to this view and call the listener, if the view is newer than the current one."""
        old = self.registry
        if view.snapshot.order > old.view.snapshot.order:
            self.registry = replace(old, view=view)
            self._notify(old, self.registry)

    def lose(self) -> None:
        """Call the listener with None, because the tenant is gone or the key is not valid."""
        self._notify(self.registry, None)

    def _notify(self, old: Registry, new: Registry | None) -> None:
        try:
            self._listener(old, new)
        except Exception:
            log.exception("follower_failed", tenant_id=old.principal.tenant)


class TenantSubscribers:
    """The followers of one tenant; `wanted` and `code` are the newest known revision and code generation."""

    __slots__ = ("code", "followers", "is_refreshing", "wanted")

    def __init__(self) -> None:
        self.followers: dict[object, Subscriber] = {}
        self.wanted = 0
        self.code = 0
        self.is_refreshing = False

    @property
    def is_behind(self) -> bool:
        """True if a follower has an older snapshot than the newest known."""
        return any(self.is_older(follower.registry.view.snapshot) for follower in self.followers.values())

    def is_older(self, snapshot: Snapshot) -> bool:
        """True if a newer snapshot than this one is known."""
        return snapshot.revision < self.wanted or snapshot.code < self.code

    @property
    def principals(self) -> Collection[Principal]:
        """The principals of the followers, each once."""
        return {follower.registry.principal for follower in self.followers.values()}

    def lose(self, principal: Principal) -> None:
        """Remove every follower with this principal, and call its listener with None."""
        gone = [token for token, follower in self.followers.items() if follower.registry.principal == principal]
        for token in gone:
            follower = self.followers.pop(token, None)
            if follower is not None:
                follower.lose()

    def show(self, view: SnapshotView) -> None:
        """Let every follower adopt the view."""
        self.wanted = max(self.wanted, view.snapshot.revision)
        for follower in tuple(self.followers.values()):
            follower.adopt(view)


class SubscriberIndex:
    """The followers of all tenants on this replica; `tidy` removes the entry of a tenant without followers."""

    def __init__(self) -> None:
        self._rooms: dict[TenantId, TenantSubscribers] = {}

    def __len__(self) -> int:
        """Number of followers, of all tenants."""
        return sum(len(room.followers) for room in self._rooms.values())

    def __iter__(self) -> Iterator[TenantId]:
        """The tenants that have followers now."""
        return iter(tuple(self._rooms))

    def find(self, tenant: TenantId) -> TenantSubscribers | None:
        """The entry of the tenant; None if it has no followers."""
        return self._rooms.get(tenant)

    def join(self, tenant: TenantId, follower: Subscriber) -> Callable[[], None]:
        """Add a follower; the returned function removes it, and may be called repeatedly."""
        room = self._rooms.setdefault(tenant, TenantSubscribers())
        token = object()
        room.followers[token] = follower

        def leave() -> None:
            room.followers.pop(token, None)
            self.tidy(tenant, room)

        return leave

    def tidy(self, tenant: TenantId, room: TenantSubscribers) -> None:
        """Remove the tenant's entry if it has no followers."""
        if not room.followers and self._rooms.get(tenant) is room:
            del self._rooms[tenant]

    def remove(self, tenant: TenantId) -> TenantSubscribers | None:
        """Remove and return all followers of the tenant."""
        return self._rooms.pop(tenant, None)
