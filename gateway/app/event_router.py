"""Who on this replica must know of an event, and how an event of ours reaches the others."""

from typing import assert_never

from gateway.app.runtime import Runtime
from gateway.domain.events import (
    CatalogMoved,
    Event,
    KeyChanged,
    RequestCancelled,
    ResourceUpdated,
    SessionEnded,
    TemplateChanged,
    TenantRemoved,
)
from gateway.jobs.template_fanout import TemplateFanout
from gateway.redis.event_bus import EventBus
from gateway.redis.sessions.subscriptions import SessionSubscriptions
from gateway.store.audit.hash_chain import CATALOG
from gateway.store.audit.unsigned_tenants import UnsignedTenants


class EventRouter:
    """Delivers events to the parts of this replica; its own at once, so that a caller reads what it wrote."""

    def __init__(
        self, bus: EventBus, runtime: Runtime, subscriptions: SessionSubscriptions, moved: UnsignedTenants
    ) -> None:
        self._bus = bus
        self._snapshots = runtime.snapshots
        self._views = runtime.views
        self._secrets = runtime.secrets
        self._credentials = runtime.credentials
        self._connections = runtime.connections
        self._subscriptions = subscriptions
        self._instances = TemplateFanout(subscriptions.followed, subscriptions.publish, spawn=bus.spawn)
        self._moved = moved

    async def publish(self, event: Event) -> None:
        """Tell this replica, then all others.

        Raises:
            RedisUnavailable: the others were not told; their revision check will find out.
        """
        self.deliver(event)
        if isinstance(event, CatalogMoved):
            self._moved.note(event.tenant, CATALOG)
        if isinstance(event, ResourceUpdated):  # sessions find it in their logs, whenever they look
            await self._subscriptions.publish(event.tenant, event.uri)
        if isinstance(event, TemplateChanged):
            self._instances.note(event.tenant, event.template)
        await self._bus.publish(event)

    def resync(self) -> None:
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
            case SessionEnded() | RequestCancelled():
                pass  # sessions and their requests listen to the bus themselves
            case ResourceUpdated() | TemplateChanged():
                pass  # subscriptions listen to the bus themselves
            case _:
                assert_never(event)
