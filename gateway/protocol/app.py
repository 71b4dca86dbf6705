"""The MCP face as one part: it is opened with the application and mounted at the tenants' URLs."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import structlog
from mcp_types import SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams

from gateway.calls.pipeline import Calls
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
from gateway.identity.authenticator import Credentials
from gateway.jobs.template_fanout import Instances
from gateway.protocol.endpoint import Endpoint
from gateway.protocol.fast_path import Plain
from gateway.protocol.http.event_streams import KEEP_ALIVE_S, Streams
from gateway.protocol.methods.sdk_runner import Kernel
from gateway.protocol.methods.server import build_server
from gateway.protocol.sessions.client_ping import PING_S
from gateway.protocol.sessions.dispatch import SessionCalls
from gateway.protocol.sessions.get_stream import Listening
from gateway.protocol.sessions.http_sse import Legacy
from gateway.protocol.sessions.running_requests import TurnId, Turns
from gateway.protocol.sessions.settings import SessionSettings
from gateway.protocol.sessions.transport import Handshake
from gateway.protocol.stateless.request_state import seal_states
from gateway.protocol.stateless.subscription_stream import ListenStreams
from gateway.protocol.stateless.subscriptions import Listens
from gateway.protocol.stateless.transport import Modern
from gateway.redis.caches.result_overflow import Leftovers
from gateway.redis.heartbeat import Life
from gateway.redis.sessions.stores import Backing
from gateway.telemetry.traces import Traces

log = structlog.get_logger(__name__)


class Face:
    """Everything that speaks MCP; `state_keys` seal what clients carry between the rounds of a call."""

    def __init__(
        self,
        credentials: Credentials,
        connections: Connections,
        calls: Calls,
        backing: Backing,
        leftovers: Leftovers,
        *,
        state_keys: Sequence[bytes],
    ) -> None:
        self._backing = backing
        self._credentials = credentials
        self._connections = connections
        self._turns = Turns()
        self._listens = Listens(connections, backing.places)
        self._instances = Instances(self._listens.followed, self._listens.tell_followers, spawn=backing.bus.spawn)
        self._streams = Streams(backing.places, keep_alive_s=min(KEEP_ALIVE_S, backing.idle_s / 3))
        settings = SessionSettings(backing)
        listen_streams = ListenStreams(self._listens)
        server = build_server(calls, listen_streams, leftovers, spawn=backing.bus.spawn)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, settings.subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, settings.unsubscribe)
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, settings.set_level)
        server.middleware += seal_states(state_keys, backing.nonces)
        plain = Plain(calls)
        kernel = Kernel(server)
        spoken = SessionCalls(kernel, backing, self._turns)
        listening = Listening(backing, self._streams, connections, ping_s=min(PING_S, backing.idle_s / 3))
        handshake = Handshake(spoken, backing, plain, listening, self._turns, self._streams)
        self._modern = Modern(server, kernel, plain, listen_streams, spawn=backing.bus.spawn)
        self._endpoint = Endpoint(
            credentials, connections, self._modern, handshake, Legacy(spoken, backing, listening, self._turns)
        )
        self._stack = AsyncExitStack()

    @property
    def open_requests(self) -> FairShare:
        """The open requests, shared between tenants."""
        return self._endpoint.crowds.places

    @property
    def paced(self) -> int:
        """Number of requests that waited because of their tenant's pace."""
        return self._endpoint.pacing.waited

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(Life(self._backing.bus))
        await self._stack.enter_async_context(self._modern)
        self._stack.callback(self._backing.bus.subscribe_gaps(self._listens.distrust))
        self._connections.dismissed = self._dismiss
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def trace(self, traces: Traces) -> None:
        """Make a span of each message from now on."""
        self._endpoint.traces = traces

    def hear(self, event: Event) -> None:
        """End, cancel and tell what an event of any replica asks for."""
        match event:
            case KeyChanged(tenant=tenant, key=key, is_ended=is_ended):
                self._listens.end(tenant, key)
                self._streams.end(key)
                if is_ended:  # sessions of a subject that was given a name go on with its next key
                    self._backing.bus.spawn(self._end_sessions, event)
            case SessionEnded(tenant=tenant, session=session):
                self._turns.end_session(tenant, session)
            case RequestCancelled(tenant=tenant, session=session, request=request):
                self._turns.cancel(TurnId(tenant, session, request.encode()))
            case ResourceUpdated(tenant=tenant, uri=uri):
                self._listens.tell(tenant, uri)
            case TemplateChanged(tenant=tenant, template=template):
                self._instances.note(tenant, template)
            case TenantRemoved(tenant=tenant):
                self._streams.end(tenant)
                self._turns.end_session(tenant)
                self._backing.bus.spawn(self._end_sessions, event)
            case _:
                pass

    def close_streams(self) -> None:
        """End all streams with what their protocol says at the end, before connections are closed under them."""
        self._listens.end_all()
        self._streams.end_all()

    def _dismiss(self, principal: Principal) -> None:
        """Its key is not what it was, and nobody has said so: it has expired, or the event was lost."""
        self._backing.bus.spawn(self._end_orphans, principal)

    async def _end_orphans(self, principal: Principal) -> None:
        if await self._credentials.has_ended(principal.key):
            await self._end_sessions(KeyChanged(tenant=principal.tenant, key=principal.key, is_ended=True))

    async def _end_sessions(self, event: KeyChanged | TenantRemoved) -> None:
        """Nobody can use these sessions any more; each replica hears of it, and the first one finds them."""
        subject = event.key if isinstance(event, KeyChanged) else None
        ended = await self._backing.sessions.remove_all(event.tenant, subject=subject)
        if ended:
            log.info("sessions_ended", tenant_id=event.tenant, count=ended)

    @property
    def endpoint(self) -> Endpoint:
        """The application behind every URL below `/t/`."""
        return self._endpoint
