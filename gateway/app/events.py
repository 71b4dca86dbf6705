"""Who on this replica must know of an event, and how an event of ours reaches the others."""

from typing import assert_never

from gateway.bus.bus import Bus
from gateway.catalog.snapshots import Snapshots
from gateway.catalog.stored_secrets import StoredSecrets
from gateway.connections.connections import Connections
from gateway.domain.events import CatalogMoved, Event, KeyChanged, SessionEnded, TenantRemoved
from gateway.identity.credentials import Credentials
from gateway.registry.build import Views


class Events:
    """Delivers events to the parts of this replica; its own at once, so that a caller reads what it wrote."""

    def __init__(
        self,
        bus: Bus,
        *,
        snapshots: Snapshots,
        views: Views,
        secrets: StoredSecrets,
        credentials: Credentials,
        connections: Connections,
    ) -> None:
        self._bus = bus
        self._snapshots = snapshots
        self._views = views
        self._secrets = secrets
        self._credentials = credentials
        self._connections = connections

    async def publish(self, event: Event) -> None:
        """Tell this replica, then all others.

        Raises:
            RedisUnavailable: the others were not told; their revision check will find out.
        """
        self.deliver(event)
        await self._bus.publish(event)

    def distrust(self) -> None:
        """Events may have been lost: check everything that is kept before it is used again."""
        self._snapshots.distrust()
        self._secrets.forget_all()
        self._credentials.forget_all()
        self._connections.distrust()

    def deliver(self, event: Event) -> None:
        """Tell the parts of this replica."""
        match event:
            case CatalogMoved():
                self._snapshots.note(event.tenant, event.revision)
                self._secrets.forget(event.tenant)
                self._connections.refresh(event.tenant, event.revision)
            case KeyChanged():
                self._credentials.forget(event.key)
            case TenantRemoved():
                self._snapshots.forget(event.tenant)
                self._views.forget(event.tenant)
                self._secrets.forget(event.tenant)
                self._credentials.forget_tenant(event.tenant)
                self._connections.forget(event.tenant)
            case SessionEnded():
                pass  # the session leases listen to the bus themselves
            case _:
                assert_never(event)
