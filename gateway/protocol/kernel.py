"""One request of the handshake era through the SDK's kernel, on a connection that is made for it.

A session needs no connection between its requests: what the kernel wants to know of one stands in the session's record.
"""

from collections.abc import Mapping
from typing import Any

import anyio
import structlog
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.models import InitializationOptions
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    InitializeRequestParams,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    ServerCapabilities,
)

from gateway.domain.sessions import SessionRecord
from gateway.protocol.current import Exchange
from gateway.protocol.identity import NAME, VERSION

log = structlog.get_logger(__name__)


class Silent:
    """The server-to-client side of a connection that has none (`mcp.shared.dispatcher.Outbound`).

    What a call says goes through its peer, not through the SDK.
    """

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Refuse."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Drop it."""
        log.debug("notification_dropped", method=method)


class Dispatch(Silent):
    """One inbound request as the SDK's kernel sees it (`mcp.shared.dispatcher.DispatchContext`)."""

    can_send_request = False

    def __init__(self, request_id: str | int) -> None:
        self.request_id = request_id
        self.transport = TransportContext(kind="streamable-http", can_send_request=False)
        self.message_metadata = ServerMessageMetadata()
        self.cancel_requested = anyio.Event()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nothing: progress is told through the call's peer."""


class Kernel:
    """Runs requests; keeps nothing between them."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def run(
        self, request: JSONRPCRequest, connection: Connection, exchange: Exchange, capabilities: ServerCapabilities
    ) -> tuple[bytes, bool]:
        """The JSON-RPC answer to one request, and whether it is a result."""
        options = InitializationOptions(server_name=NAME, server_version=VERSION, capabilities=capabilities)
        runner: ServerRunner[Any] = ServerRunner(self._server, connection, {}, init_options=options)
        reply: JSONRPCResponse | JSONRPCError
        try:
            result = await runner.on_request(Dispatch(request.id), request.method, request.params)
            reply = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
        except Exception as error:
            reply = JSONRPCError(jsonrpc="2.0", id=request.id, error=_error_of(error, exchange))
        finally:
            await aclose_shielded(connection)
        body = reply.model_dump_json(by_alias=True, exclude_unset=True).encode()
        return body, isinstance(reply, JSONRPCResponse)


def connection_of(record: SessionRecord) -> Connection:
    """The session's connection, as it was after its handshake; before it, one that waits for that."""
    if not record.is_open:
        return Connection.for_loop(Silent(), session_id=record.id)
    connection = Connection(
        Silent(),
        protocol_version=record.protocol_version,
        session_id=record.id,
        client_params=InitializeRequestParams.model_validate(record.client, by_name=False),
    )
    connection.initialized.set()
    return connection


def _error_of(error: Exception, exchange: Exchange) -> ErrorData:
    """What the client may know of an exception that left the kernel."""
    known = handler_exception_to_error_data(error)
    if known is not None:
        return known
    log.error("request_failed", correlation_id=exchange.correlation_id, exc_info=error)
    data = {"code": "internal", "correlation_id": exchange.correlation_id}
    return ErrorData(code=INTERNAL_ERROR, message="Internal server error", data=data)
