"""The MCP face as one part: it is opened with the application and mounted at the tenants' URLs."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from gateway.bus.sessions import Sessions
from gateway.calls.run import Calls
from gateway.connections.connections import Connections
from gateway.domain.events import Event, KeyChanged
from gateway.identity.credentials import Credentials
from gateway.protocol.endpoint import MAX_BODY, Endpoint
from gateway.protocol.handshake import Handshake
from gateway.protocol.listen import Listens
from gateway.protocol.plain import Plain
from gateway.protocol.server import build_server


class Face:
    """Everything that speaks MCP."""

    def __init__(self, credentials: Credentials, connections: Connections, calls: Calls, sessions: Sessions) -> None:
        self._listens = Listens(connections.subscribe)
        server = build_server(calls, self._listens)
        # 2026-07-28 has no sessions. JSON answers: no tool of ours emits anything before its result yet.
        self._modern = StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, max_request_body_size=MAX_BODY
        )
        plain = Plain(calls)
        self._endpoint = Endpoint(credentials, connections, self._modern, Handshake(server, sessions, plain), plain)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._modern.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def hear(self, event: Event) -> None:
        """A key that was revoked or changed has its streams ended; what it still may have is asked for anew."""
        if isinstance(event, KeyChanged):
            self._listens.end(event.key)

    def close_streams(self) -> None:
        """End all streams with what their protocol says at the end, before connections are closed under them."""
        self._listens.close()

    @property
    def endpoint(self) -> Endpoint:
        """The application behind every URL below `/t/`."""
        return self._endpoint
