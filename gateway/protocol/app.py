"""Assembly of all MCP transports, which are mounted below `/t/` and opened with the application."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from mcp_types import SetLevelRequestParams, SubscribeRequestParams, UnsubscribeRequestParams

from gateway.domain.fairness.share import FairSlotPool
from gateway.identity.authenticator import Authenticator
from gateway.protocol.endpoint import McpEndpoint
from gateway.protocol.fast_path import FastPath
from gateway.protocol.http.limits import KEEP_ALIVE_S
from gateway.protocol.http.sse_streams import OpenStreams
from gateway.protocol.methods.found_resources import ResourceFinder
from gateway.protocol.methods.sdk_runner import SdkRunner
from gateway.protocol.methods.server import build_server
from gateway.protocol.sessions.dispatch import SessionDispatcher
from gateway.protocol.sessions.get_stream import GetStreams
from gateway.protocol.sessions.http_sse import HttpSseTransport
from gateway.protocol.sessions.limits import PING_S
from gateway.protocol.sessions.running_requests import RunningRequests
from gateway.protocol.sessions.settings import SessionSettings
from gateway.protocol.sessions.transport import SessionTransport
from gateway.protocol.stateless.request_state import request_state_middleware
from gateway.protocol.stateless.subscription_stream import SubscriptionStreams
from gateway.protocol.stateless.subscriptions import SubscriptionHub
from gateway.protocol.stateless.transport import StatelessTransport
from gateway.protocol.tasks.runs import TaskRunner
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.sessions.stores import SessionStores
from gateway.registry.connections.connections import Connections
from gateway.telemetry.traces import Traces


class McpApp:
    """All MCP transports of this replica.

    `state_keys` seal `requestState`: the first key seals new states, and every key opens them. `traces` exports a span
    for each message that a client POSTs.
    """

    def __init__(
        self,
        credentials: Authenticator,
        connections: Connections,
        stores: SessionStores,
        tasks: TaskRunner,
        *,
        state_keys: Sequence[bytes],
        traces: Traces | None,
    ) -> None:
        self._stores = stores
        self.tasks = tasks
        calls = tasks.calls
        self.running = RunningRequests()
        self.subscriptions = SubscriptionHub(connections, stores.stream_limiter)
        self.streams = OpenStreams(stores.stream_limiter, keep_alive_s=min(KEEP_ALIVE_S, stores.idle_s / 3))
        settings = SessionSettings(stores)
        listen_streams = SubscriptionStreams(self.subscriptions, tasks.records)
        finder = ResourceFinder(stores.links)
        server = build_server(tasks, listen_streams, finder, spawn=stores.spawn)
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, settings.subscribe)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, settings.unsubscribe)
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, settings.set_level)
        server.middleware += request_state_middleware(state_keys, stores.nonces)
        plain = FastPath(calls)
        kernel = SdkRunner(server, finder)
        spoken = SessionDispatcher(kernel, stores, self.running)
        listening = GetStreams(stores, self.streams, connections, ping_s=min(PING_S, stores.idle_s / 3))
        handshake = SessionTransport(spoken, stores, plain, listening, running=self.running, streams=self.streams)
        self._modern = StatelessTransport(server, kernel, plain, listen_streams, spawn=stores.spawn)
        self._endpoint = McpEndpoint(
            credentials,
            connections,
            self._modern,
            handshake,
            legacy=HttpSseTransport(spoken, stores, listening, self.running),
            traces=traces,
        )
        self._stack = AsyncExitStack()
        self.heartbeat = ReplicaHeartbeat(stores.bus)

    @property
    def open_requests(self) -> FairSlotPool:
        """The slots for open requests, shared fairly between tenants."""
        return self._endpoint.in_flight.slot_pool

    @property
    def paced(self) -> int:
        """Number of requests that were delayed by their tenant's request rate."""
        return self._endpoint.pacing.waited

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self.heartbeat)
        await self._stack.enter_async_context(self.tasks)
        await self._stack.enter_async_context(self._modern)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def close_streams(self) -> None:
        """Finish all subscriptions and all streams opened with GET, before the server closes their connections."""
        self.subscriptions.end_all()
        self.streams.end_all()

    @property
    def endpoint(self) -> McpEndpoint:
        """The ASGI application behind every URL below `/t/`, except those of webhooks."""
        return self._endpoint
