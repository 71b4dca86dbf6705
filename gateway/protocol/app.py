"""The MCP face as one part: it is opened with the application and mounted at the tenants' URLs."""

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
from gateway.domain.fairness.share import FairShare
from gateway.domain.tenancy.principals import Principal
from gateway.identity.authenticator import Authenticator
from gateway.jobs.template_fanout import TemplateFanout
from gateway.protocol.endpoint import McpEndpoint
from gateway.protocol.fast_path import FastPath
from gateway.protocol.http.event_streams import KEEP_ALIVE_S, OpenStreams
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
    """Everything that speaks MCP; `state_keys` seal what clients carry between the rounds of a call."""

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
            self._subscriptions.followed, self._subscriptions.publish_now, spawn=stores.bus.spawn
        )
        self._streams = OpenStreams(stores.places, keep_alive_s=min(KEEP_ALIVE_S, stores.idle_s / 3))
        settings = SessionSettings(stores)
        listen_streams = SubscriptionStreams(self._subscriptions)
        server = build_server(calls, listen_streams, overflow, spawn=stores.bus.spawn)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, settings.subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, settings.unsubscribe)
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, settings.set_level)
        server.middleware += request_state_middleware(state_keys, stores.nonces)
        plain = FastPath(calls)
        kernel = SdkRunner(server)
        spoken = SessionDispatcher(kernel, stores, self._running)
        listening = GetStreams(stores, self._streams, connections, ping_s=min(PING_S, stores.idle_s / 3))
        handshake = SessionTransport(spoken, stores, plain, listening, self._running, self._streams)
        self._modern = StatelessTransport(server, kernel, plain, listen_streams, spawn=stores.bus.spawn)
        self._endpoint = McpEndpoint(
            credentials,
            connections,
            self._modern,
            handshake,
            HttpSseTransport(spoken, stores, listening, self._running),
        )
        self._stack = AsyncExitStack()

    @property
    def open_requests(self) -> FairShare:
        """The open requests, shared between tenants."""
        return self._endpoint.in_flight.places

    @property
    def paced(self) -> int:
        """Number of requests that waited because of their tenant's pace."""
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
        """Make a span of each message from now on."""
        self._endpoint.traces = traces

    def deliver(self, event: Event) -> None:
        """End, cancel and tell what an event of any replica asks for."""
        match event:
            case KeyChanged(tenant=tenant, key=key, is_ended=is_ended):
                self._subscriptions.end(tenant, key)
                self._streams.end(key)
                if is_ended:  # sessions of a subject that was given a name go on with its next key
                    self._stores.bus.spawn(self._end_sessions, event)
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
                self._stores.bus.spawn(self._end_sessions, event)
            case _:
                pass

    def close_streams(self) -> None:
        """End all streams with what their protocol says at the end, before connections are closed under them."""
        self._subscriptions.end_all()
        self._streams.end_all()

    def _dismiss(self, principal: Principal) -> None:
        """Its key is not what it was, and nobody has said so: it has expired, or the event was lost."""
        self._stores.bus.spawn(self._end_orphans, principal)

    async def _end_orphans(self, principal: Principal) -> None:
        if await self._credentials.has_ended(principal.key):
            await self._end_sessions(KeyChanged(tenant=principal.tenant, key=principal.key, is_ended=True))

    async def _end_sessions(self, event: KeyChanged | TenantRemoved) -> None:
        """Nobody can use these sessions any more; each replica hears of it, and the first one finds them."""
        subject = event.key if isinstance(event, KeyChanged) else None
        ended = await self._stores.sessions.remove_all(event.tenant, subject=subject)
        if ended:
            log.info("sessions_ended", tenant_id=event.tenant, count=ended)

    @property
    def endpoint(self) -> McpEndpoint:
        """The application behind every URL below `/t/`."""
        return self._endpoint
