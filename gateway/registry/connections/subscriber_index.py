"""Index of a replica's subscribers by tenant; each has its current registry and a listener for newer registries."""

from collections.abc import Callable, Collection, Iterator

import structlog
from msgspec.structs import replace

from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.registry.registry import Registry
from gateway.registry.views import SnapshotView

log = structlog.get_logger(__name__)

Listener = Callable[[Registry, Registry | None], None]
"""Called with the previous and the new registry; the new one is None if the tenant or key was removed."""


class Subscriber:
    """One client that follows its tenant's catalog, and the last registry that it adopted."""

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

    def end(self) -> None:
        """Call the listener with None, because the tenant was removed or the key is not valid."""
        self._notify(self.registry, None)

    def _notify(self, old: Registry, new: Registry | None) -> None:
        try:
            self._listener(old, new)
        except Exception:
            log.exception("follower_failed", tenant_id=old.principal.tenant)


class TenantSubscribers:
    """The subscribers of one tenant; `wanted` and `code` are the newest known revision and code generation."""

    __slots__ = ("by_token", "code", "is_refreshing", "wanted")

    def __init__(self) -> None:
        self.by_token: dict[object, Subscriber] = {}
        self.wanted = 0
        self.code = 0
        self.is_refreshing = False

    @property
    def is_behind(self) -> bool:
        """True if a subscriber has an older snapshot than the newest known."""
        return any(self.is_older(subscriber.registry.view.snapshot) for subscriber in self.by_token.values())

    def is_older(self, snapshot: Snapshot) -> bool:
        """True if a newer snapshot than this one is known."""
        return snapshot.revision < self.wanted or snapshot.code < self.code

    @property
    def principals(self) -> Collection[Principal]:
        """The distinct principals of the subscribers, one per access token."""
        found = (subscriber.registry.principal for subscriber in self.by_token.values())
        return {principal.credential: principal for principal in found}.values()  # guard: stream-of-its-token

    def drop(self, principal: Principal) -> None:
        """Remove every subscriber with the credential of this principal, and call its listener with None."""
        ended = principal.credential
        # guard: stream-of-another-token
        gone = [token for token, each in self.by_token.items() if each.registry.principal.credential == ended]
        for token in gone:
            subscriber = self.by_token.pop(token, None)
            if subscriber is not None:
                subscriber.end()

    def show(self, view: SnapshotView) -> None:
        """Switch every subscriber to the view."""
        self.wanted = max(self.wanted, view.snapshot.revision)
        for subscriber in tuple(self.by_token.values()):
            subscriber.adopt(view)


class SubscriberIndex:
    """The subscribers of all tenants on this replica; a tenant without subscribers has no entry."""

    def __init__(self) -> None:
        self._by_tenant: dict[TenantId, TenantSubscribers] = {}

    def __len__(self) -> int:
        """Number of subscribers, of all tenants."""
        return sum(len(subscribers.by_token) for subscribers in self._by_tenant.values())

    def __iter__(self) -> Iterator[TenantId]:
        """The tenants that have subscribers now."""
        return iter(tuple(self._by_tenant))

    def find(self, tenant: TenantId) -> TenantSubscribers | None:
        """The entry of the tenant; None if it has no subscribers."""
        return self._by_tenant.get(tenant)

    def join(self, tenant: TenantId, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; the returned function removes it, and may be called repeatedly."""
        subscribers = self._by_tenant.setdefault(tenant, TenantSubscribers())
        token = object()
        subscribers.by_token[token] = subscriber

        def leave() -> None:
            subscribers.by_token.pop(token, None)
            self.remove_if_empty(tenant, subscribers)

        return leave

    def remove_if_empty(self, tenant: TenantId, subscribers: TenantSubscribers) -> None:
        """Remove the tenant's entry if it has no subscribers."""
        if not subscribers.by_token and self._by_tenant.get(tenant) is subscribers:
            del self._by_tenant[tenant]

    def remove(self, tenant: TenantId) -> TenantSubscribers | None:
        """Remove and return all subscribers of the tenant."""
        return self._by_tenant.pop(tenant, None)
