"""Assembles all MCP transports; opened with the application and mounted below `/t/`."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import structlog
from mcp_types import SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams

from gateway.calls.pipeline import CallPipeline
from gateway.connections.connections import Connections
from gateway.domain.events import (
    Event,
    KeyChanged,
    RequestCancelled,
    ResourceUpdated,
    SessionEnded,
    TemplateChanged,
    TenantRemoved,
)
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.tenancy.principals import Principal
from gateway.identity.authenticator import Authenticator
from gateway.jobs.template_fanout import TemplateFanout
from gateway.protocol.endpoint import McpEndpoint
from gateway.protocol.fast_path import FastPath
from gateway.protocol.http.sse_streams import KEEP_ALIVE_S, OpenStreams
from gateway.protocol.methods.sdk_runner import SdkRunner
from gateway.protocol.methods.server import build_server
from gateway.protocol.sessions.client_ping import PING_S
from gateway.protocol.sessions.dispatch import SessionDispatcher
from gateway.protocol.sessions.get_stream import GetStreams
from gateway.protocol.sessions.http_sse import HttpSseTransport
from gateway.protocol.sessions.running_requests import RequestKey, RunningRequests
from gateway.protocol.sessions.settings import SessionSettings
from gateway.protocol.sessions.transport import SessionTransport
from gateway.protocol.stateless.request_state import request_state_middleware
from gateway.protocol.stateless.subscription_stream import SubscriptionStreams
from gateway.protocol.stateless.subscriptions import SubscriptionHub
from gateway.protocol.stateless.transport import StatelessTransport
from gateway.redis.caches.result_overflow import ResultOverflow
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.sessions.stores import SessionStores
from gateway.telemetry.traces import Traces

log = structlog.get_logger(__name__)


class McpApp:
    """All MCP transports of this replica; `state_keys` seal `requestState`, the first for new states, all for old."""

    def __init__(
        self,
        credentials: Authenticator,
        connections: Connections,
        calls: CallPipeline,
        stores: SessionStores,
        overflow: ResultOverflow,
        *,
        state_keys: Sequence[bytes],
    ) -> None:
        self._stores = stores
        self._credentials = credentials
        self._connections = connections
        self._running = RunningRequests()
        self._subscriptions = SubscriptionHub(connections, stores.places)
        self._instances = TemplateFanout(
            self._subscriptions.followed, self._subscriptions.publish_now, spawn=stores.spawn
        )
        self._streams = OpenStreams(stores.places, keep_alive_s=min(KEEP_ALIVE_S, stores.idle_s / 3))
        settings = SessionSettings(stores)
        listen_streams = SubscriptionStreams(self._subscriptions)
        server = build_server(calls, listen_streams, overflow, spawn=stores.spawn)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, settings.subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, settings.unsubscribe)
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, settings.set_level)
        server.middleware += request_state_middleware(state_keys, stores.nonces)
        plain = FastPath(calls)
        kernel = SdkRunner(server)
        spoken = SessionDispatcher(kernel, stores, self._running)
        listening = GetStreams(stores, self._streams, connections, ping_s=min(PING_S, stores.idle_s / 3))
        handshake = SessionTransport(spoken, stores, plain, listening, self._running, self._streams)
        self._modern = StatelessTransport(server, kernel, plain, listen_streams, spawn=stores.spawn)
        self._endpoint = McpEndpoint(
            credentials,
            connections,
            self._modern,
            handshake,
            HttpSseTransport(spoken, stores, listening, self._running),
        )
        self._stack = AsyncExitStack()

    @property
    def open_requests(self) -> FairSlotPool:
        """The capacity for open requests, shared fairly between tenants."""
        return self._endpoint.in_flight.places

    @property
    def paced(self) -> int:
        """Number of requests that were delayed by their tenant's request rate."""
        return self._endpoint.pacing.waited

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(ReplicaHeartbeat(self._stores.bus))
        await self._stack.enter_async_context(self._modern)
        self._stack.callback(self._stores.bus.subscribe_gaps(self._subscriptions.recheck_all))
        self._connections.dismissed = self._dismiss
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def trace(self, traces: Traces) -> None:
        """Export a span for each message that a client POSTs from now on."""
        self._endpoint.traces = traces

    def deliver(self, event: Event) -> None:
        """Apply an event of any replica: end streams and sessions, cancel requests, notify subscriptions."""
        match event:
            case KeyChanged(tenant=tenant, key=key, is_ended=is_ended):
                self._subscriptions.end(tenant, key)
                self._streams.end(key)
                if is_ended:  # a named subject keeps its sessions: only those whose subject is the key are removed
                    self._stores.spawn(self._end_sessions, event)
            case SessionEnded(tenant=tenant, session=session):
                self._running.end_session(tenant, session)
            case RequestCancelled(tenant=tenant, session=session, request=request):
                self._running.cancel(RequestKey(tenant, session, request.encode()))
            case ResourceUpdated(tenant=tenant, uri=uri):
                self._subscriptions.publish(tenant, uri)
            case TemplateChanged(tenant=tenant, template=template):
                self._instances.note(tenant, template)
            case TenantRemoved(tenant=tenant):
                self._streams.end(tenant)
                self._running.end_session(tenant)
                self._stores.spawn(self._end_sessions, event)
            case _:
                pass

    def close_streams(self) -> None:
        """Finish all subscriptions and all streams opened with GET, before the server closes their connections."""
        self._subscriptions.end_all()
        self._streams.end_all()

    def _dismiss(self, principal: Principal) -> None:
        """End the sessions of a key if it has ended without an event: it expired, or the event was lost."""
        self._stores.spawn(self._end_orphans, principal)

    async def _end_orphans(self, principal: Principal) -> None:
        if await self._credentials.has_ended(principal.key):
            await self._end_sessions(KeyChanged(tenant=principal.tenant, key=principal.key, is_ended=True))

    async def _end_sessions(self, event: KeyChanged | TenantRemoved) -> None:
        """Remove sessions that no key can use any more. All replicas receive the event; the first one removes them."""
        subject = event.key if isinstance(event, KeyChanged) else None
        ended = await self._stores.sessions.remove_all(event.tenant, subject=subject)
        if ended:
            log.info("sessions_ended", tenant_id=event.tenant, count=ended)

    @property
    def endpoint(self) -> McpEndpoint:
        """The ASGI application behind every URL below `/t/`, except those of webhooks."""
        return self._endpoint
