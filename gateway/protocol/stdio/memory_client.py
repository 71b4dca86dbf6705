"""An MCP client of the SDK whose server runs in the same process: no sockets, processes or files.

Each message is one line of JSON in both directions, as on standard streams, so that the server parses, validates and
renders it as for any other client.
"""

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias, TypedDict, Unpack

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import Client
from mcp.client.session import ElicitationFnT, ListRootsFnT, LoggingFnT, MessageHandlerFnT, SamplingFnT
from mcp.shared.message import SessionMessage
from mcp_types import Implementation, LoggingLevel, jsonrpc_message_adapter

from gateway.protocol.stdio.streams import ClientGone

MemoryClient: TypeAlias = Client
"""The client of the SDK."""
_Received = SessionMessage | Exception
_ClientStreams = tuple[MemoryObjectReceiveStream[_Received], MemoryObjectSendStream[SessionMessage]]


class MemoryClientOptions(TypedDict, total=False):
    """The options of the SDK's client that a test of a server needs."""

    mode: str
    client_info: Implementation
    read_timeout_seconds: float
    elicitation_callback: ElicitationFnT
    sampling_callback: SamplingFnT
    list_roots_callback: ListRootsFnT
    logging_callback: LoggingFnT
    log_level: LoggingLevel
    message_handler: MessageHandlerFnT


def connect(
    serve: Callable[["MemoryStreams"], Coroutine[Any, Any, None]], **options: Unpack[MemoryClientOptions]
) -> MemoryClient:
    """Return a client of the server behind `serve`, which runs while the client is open.

    With a `logging_callback` and no `log_level`, messages of all levels are sent; without one, 2026-07-28 sends none.
    """
    if "logging_callback" in options:
        options.setdefault("log_level", "debug")
    return Client(_transport(serve), **options)


class MemoryStreams:
    """The server's end of the lines: a client that is gone reads nothing more."""

    is_gone = False

    def __init__(
        self, sent: MemoryObjectReceiveStream[SessionMessage], received: MemoryObjectSendStream[_Received]
    ) -> None:
        self._sent = sent
        self._received = received

    async def lines(self) -> AsyncGenerator[bytes]:
        """Yield the client's messages until it closes its stream."""
        async with self._sent:
            async for one in self._sent:
                yield one.message.model_dump_json(by_alias=True, exclude_unset=True).encode()

    async def write(self, message: bytes) -> None:
        """Pass one message to the client.

        Raises:
            ClientGone: the client closed its stream.
        """
        try:
            await self._received.send(SessionMessage(jsonrpc_message_adapter.validate_json(message)))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.is_gone = True
            raise ClientGone from None


def _transport(
    serve: Callable[[MemoryStreams], Coroutine[Any, Any, None]],
) -> AbstractAsyncContextManager[_ClientStreams]:
    @asynccontextmanager
    async def opened() -> AsyncGenerator[_ClientStreams]:
        to_server, sent = anyio.create_memory_object_stream[SessionMessage]()
        received, to_client = anyio.create_memory_object_stream[_Received]()
        async with anyio.create_task_group() as group, to_server, sent, received, to_client:
            group.start_soon(serve, MemoryStreams(sent, received))
            yield to_client, to_server
            group.cancel_scope.cancel()  # the test is over: open requests need no end

    return opened()
