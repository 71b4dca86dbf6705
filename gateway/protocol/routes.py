"""The MCP face as one part: it is opened with the application and mounted at the tenants' URLs."""

from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from gateway.bus.sessions import Sessions
from gateway.calls.run import Calls
from gateway.connections.connections import Connections
from gateway.identity.credentials import Credentials
from gateway.protocol.endpoint import MAX_BODY, Endpoint
from gateway.protocol.handshake import Handshake
from gateway.protocol.server import build_server


class Face:
    """Everything that speaks MCP."""

    def __init__(self, credentials: Credentials, connections: Connections, calls: Calls, sessions: Sessions) -> None:
        server = build_server(calls)
        # 2026-07-28 has no sessions. JSON answers: no tool of ours emits anything before its result yet.
        self._modern = StreamableHTTPSessionManager(
            app=server, json_response=True, stateless=True, max_request_body_size=MAX_BODY
        )
        self._endpoint = Endpoint(credentials, connections, self._modern, Handshake(server, sessions))
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._modern.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def endpoint(self) -> Endpoint:
        """The application behind every URL below `/t/`."""
        return self._endpoint
