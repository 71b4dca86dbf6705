"""Event router: delivers events to the parts of this replica, and publishes events of this replica to the others."""

from typing import assert_never

from gateway.app.infrastructure import Infrastructure
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
from gateway.redis.sessions.subscriptions import SessionSubscriptions
from gateway.store.audit.hash_chain import CATALOG


class EventRouter:
    """Delivers events to the parts of this replica.

    An event of this replica is delivered before it is published, so a caller reads its own writes.
    """

    def __init__(self, infrastructure: Infrastructure, runtime: Runtime, subscriptions: SessionSubscriptions) -> None:
        self._bus = infrastructure.bus
        self._snapshots = runtime.snapshots
        self._views = runtime.views
        self._secrets = runtime.secrets
        self._credentials = runtime.credentials
        self._connections = runtime.connections
        self._subscriptions = subscriptions
        self._instances = TemplateFanout(
            subscriptions.followed, subscriptions.publish, spawn=infrastructure.tasks.spawn
        )
        self._moved = infrastructure.unsigned_tenants

    async def publish(self, event: Event) -> None:
        """Deliver the event to this replica, then to all others.

        Raises:
            RedisUnavailable: other replicas may not be notified; their revision check finds a change of a catalog.
        """
        self.dispatch(event)
        if isinstance(event, CatalogMoved):
            self._moved.note(event.tenant, CATALOG)
        if isinstance(event, ResourceUpdated):  # written to each session's log, which the session reads later
            await self._subscriptions.publish(event.tenant, event.uri)
        if isinstance(event, TemplateChanged):
            self._instances.note(event.tenant, event.template)
        await self._bus.publish(event)

    def resync(self) -> None:
        """Discard cached secrets and credentials, and check snapshots and connections again, after an event gap."""
        self._snapshots.invalidate_all()
        self._secrets.forget_all()
        self._credentials.forget_all()
        self._connections.recheck_all()

    def dispatch(self, event: Event) -> None:
        """Deliver the event to the parts of this replica that do not subscribe to the bus."""
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
