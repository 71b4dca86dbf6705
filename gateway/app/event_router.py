"""Event router: one table with the subscribers of each event type, in the order in which they are called.

The bus also returns a replica's own events to it. Events may be lost; after a gap, each cache is checked or emptied.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from typing import Any, Generic, TypeVar

import structlog

from gateway.app.infrastructure import Infrastructure
from gateway.app.runtime import Runtime
from gateway.domain.events import (
    ApprovalChanged,
    CatalogMoved,
    Event,
    IssuerChanged,
    KeyChanged,
    LiveSourceChanged,
    RequestCancelled,
    ResourceUpdated,
    SessionEnded,
    TaskChanged,
    TemplateChanged,
    TenantRemoved,
)
from gateway.domain.identifiers import TenantId
from gateway.jobs.template_fanout import TemplateFanout
from gateway.protocol.app import McpApp
from gateway.protocol.sessions.running_requests import RequestKey
from gateway.redis.event_bus import EventBus
from gateway.store.audit.hash_chain import CATALOG

log = structlog.get_logger(__name__)

_E = TypeVar("_E", bound=Event)


@dataclass(frozen=True, kw_only=True)  # `slots` breaks the construction of generic frozen classes in Python 3.11
class EventRoute(Generic[_E]):
    """The subscribers of one type of event."""

    caches: Sequence[Callable[[_E], object]] = ()
    """Called by the publisher before it sends the event, so that it reads its own writes, and by each replica
    on arrival.
    """
    publisher: Sequence[Callable[[_E], object]] = ()
    """Called by the publisher only, before it sends the event; awaited if asynchronous."""
    arrival: Sequence[Callable[[_E], object]] = ()
    """Called by each replica, including the publisher, when the event arrives."""


Routes = Mapping[type[Event], EventRoute[Any]]


class EventRouter:
    """Publishes events of this replica, and delivers events of all replicas to the subscribers of this replica."""

    def __init__(self, bus: EventBus, routes: Routes, after_gap: Sequence[Callable[[], None]]) -> None:
        self._bus = bus
        self.routes = routes
        self._after_gap = after_gap

    @contextmanager
    def listening(self) -> Generator[None]:
        """Deliver events and gaps of the bus while the block runs."""
        unsubscribe, unsubscribe_gaps = self._bus.subscribe(self._deliver), self._bus.subscribe_gaps(self._resync)
        try:
            yield
        finally:
            unsubscribe_gaps()
            unsubscribe()

    async def publish(self, event: Event) -> None:
        """Apply the event to this replica's caches, then send it to all replicas.

        Raises:
            RedisUnavailable: other replicas may not be notified; their revision check finds a change of a catalog.
        """
        route = self.routes[type(event)]
        for subscriber in (*route.caches, *route.publisher):
            done = subscriber(event)
            if isawaitable(done):
                await done
        await self._bus.publish(event)

    def _deliver(self, event: Event) -> None:
        route = self.routes[type(event)]
        for subscriber in (*route.caches, *route.arrival):
            _call_logged(subscriber, event)

    def _resync(self) -> None:
        for subscriber in self._after_gap:
            _call_logged(subscriber)


def build_event_router(infrastructure: Infrastructure, runtime: Runtime, mcp_app: McpApp) -> EventRouter:
    """Build the router of a replica; it delivers nothing before `listening`."""
    after_gap = (
        runtime.stores.sessions.forget_all,
        runtime.snapshots.invalidate_all,
        runtime.secrets.forget_all,
        runtime.credentials.forget_all,
        runtime.operators.forget,
        runtime.connections.recheck_all,
        mcp_app.subscriptions.recheck_all,
        runtime.providers.recheck_all,
        runtime.approvals.recheck_all,
    )
    return EventRouter(infrastructure.bus, _routes(infrastructure, runtime, mcp_app), after_gap)


def _routes(infrastructure: Infrastructure, runtime: Runtime, mcp_app: McpApp) -> Routes:
    snapshots, secrets, connections = runtime.snapshots, runtime.secrets, runtime.connections
    credentials, stores = runtime.credentials, runtime.stores
    hub, running = mcp_app.subscriptions, mcp_app.running
    in_logs = TemplateFanout(stores.subscriptions.followed, stores.subscriptions.publish, spawn=stores.spawn)
    in_hub = TemplateFanout(hub.followed, hub.publish_now, spawn=stores.spawn)
    return {
        CatalogMoved: EventRoute[CatalogMoved](
            caches=(
                lambda event: snapshots.note(event.tenant, event.revision),
                lambda event: secrets.forget(event.tenant),
                lambda event: credentials.forget_issuers(event.tenant),
                lambda event: runtime.operators.note_change(event.tenant),
                lambda event: connections.refresh(event.tenant, event.revision),
            ),
            publisher=(lambda event: infrastructure.unsigned_tenants.note(event.tenant, CATALOG),),
        ),
        KeyChanged: EventRoute[KeyChanged](
            caches=(lambda event: credentials.forget(event.key),),
            arrival=_key_subscribers(runtime, mcp_app),
        ),
        IssuerChanged: EventRoute[IssuerChanged](caches=(lambda event: credentials.forget_tenant(event.tenant),)),
        SessionEnded: EventRoute[SessionEnded](
            arrival=(
                lambda event: stores.sessions.forget(event.tenant, event.session),
                lambda event: running.end_session(event.tenant, event.session),
                partial(stores.spawn, runtime.live.end_sessions),
            )
        ),
        RequestCancelled: EventRoute[RequestCancelled](
            arrival=(lambda event: running.cancel(RequestKey(event.tenant, event.session, event.request.encode())),)
        ),
        ResourceUpdated: EventRoute[ResourceUpdated](
            publisher=(lambda event: stores.subscriptions.publish(event.tenant, event.uri),),
            arrival=(lambda event: hub.publish(event.tenant, event.uri),),
        ),
        TemplateChanged: EventRoute[TemplateChanged](
            publisher=(lambda event: in_logs.note(event.tenant, event.template),),
            arrival=(lambda event: in_hub.note(event.tenant, event.template),),
        ),
        LiveSourceChanged: EventRoute(publisher=(runtime.live.make_due,), arrival=(runtime.live.interrupt,)),
        ApprovalChanged: EventRoute[ApprovalChanged](arrival=(runtime.approvals.note,)),
        TaskChanged: EventRoute[TaskChanged](arrival=(mcp_app.tasks.note_change, hub.publish_task)),
        TenantRemoved: EventRoute[TenantRemoved](
            caches=_by_tenant(
                snapshots.forget, runtime.views.forget, secrets.forget, credentials.forget_tenant, connections.forget
            ),
            arrival=_tenant_subscribers(runtime, mcp_app),
        ),
    }


def _key_subscribers(runtime: Runtime, mcp_app: McpApp) -> Sequence[Callable[[KeyChanged], object]]:
    """Return the functions that end the streams, sessions and connections of a changed key."""
    hub, streams, orphans, providers = mcp_app.subscriptions, mcp_app.streams, runtime.orphans, runtime.providers
    tasks = mcp_app.tasks
    return (
        lambda event: hub.end(event.tenant, event.ends),
        lambda event: streams.end(event.ends),
        lambda event: orphans.end(event.tenant, event.key) if event.is_ended else None,
        lambda event: providers.end(event.ends),
        lambda event: tasks.end_key(event.tenant, event.key) if event.is_ended else None,
    )


def _tenant_subscribers(runtime: Runtime, mcp_app: McpApp) -> Sequence[Callable[[TenantRemoved], object]]:
    """Return the functions that end the streams, sessions and connections of a removed tenant."""
    sessions = (runtime.stores.sessions.forget_tenant, mcp_app.running.end_session, runtime.orphans.end)
    others = (runtime.providers.end_tenant, runtime.live.interrupt_tenant, mcp_app.tasks.end_tenant)
    return _by_tenant(*sessions, mcp_app.streams.end_tenant, *others)


def _by_tenant(*subscribers: Callable[[TenantId], object]) -> Sequence[Callable[[TenantRemoved], object]]:
    return tuple(partial(_call_with_tenant, subscriber) for subscriber in subscribers)


def _call_with_tenant(subscriber: Callable[[TenantId], object], event: TenantRemoved) -> None:
    subscriber(event.tenant)


def _call_logged(subscriber: Callable[..., object], *arguments: object) -> None:
    """Call a subscriber; its failure is logged, so that later subscribers receive the event too."""
    try:
        subscriber(*arguments)
    except Exception:
        log.exception("subscriber_failed")
