"""The handshake era (2024-11-05 to 2025-11-25) without the SDK's transports.

A session is a record in Redis, so that any replica can serve any of its requests: each POST rebuilds a connection that
is born ready, runs one request through the SDK's kernel, and is answered with JSON. Streams come later; until then a
client that asks for one is told that there is none (405), which the protocol allows.
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
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from starlette.types import Scope, Send

from gateway.bus.sessions import Sessions, new_session_id
from gateway.domain.sessions import SessionRecord
from gateway.errors import NotFound
from gateway.protocol.current import Exchange
from gateway.protocol.identity import NAME, VERSION
from gateway.protocol.plain import Plain, recognises
from gateway.protocol.server import capabilities_of
from gateway.protocol.wire import Headers, answer, header, invalid_request, refusal

log = structlog.get_logger(__name__)

SESSION_HEADER = b"mcp-session-id"


class _Silent:
    """The server-to-client side of a connection that has none (`mcp.shared.dispatcher.Outbound`)."""

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        log.debug("notification_dropped", method=method)


class _Dispatch(_Silent):
    """One inbound request as the SDK's kernel sees it (`mcp.shared.dispatcher.DispatchContext`)."""

    can_send_request = False

    def __init__(self, request_id: str | int) -> None:
        self.request_id = request_id
        self.transport = TransportContext(kind="streamable-http", can_send_request=False)
        self.message_metadata = ServerMessageMetadata()
        self.cancel_requested = anyio.Event()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nothing: a JSON answer has no room for progress."""


class Handshake:
    """Serves the messages of sessions; keeps nothing of them between requests."""

    def __init__(self, server: Server[Any], sessions: Sessions, plain: Plain) -> None:
        self._server = server
        self._sessions = sessions
        self._plain = plain

    async def post(self, scope: Scope, send: Send, message: dict[str, Any], exchange: Exchange) -> None:
        """Serve one message; a request is answered, everything else acknowledged."""
        if recognises(message) and await self._post_plainly(scope, send, message, exchange):
            return
        try:
            parsed = jsonrpc_message_adapter.validate_python(message, by_name=False)
        except ValidationError:
            await answer(send, 400, invalid_request("the body is not one JSON-RPC message", exchange.correlation_id))
            return
        if isinstance(parsed, JSONRPCRequest) and parsed.method == "initialize":
            await self._initialize(send, parsed, exchange)
            return
        record = await self._session(scope, send, exchange)
        if record is None:
            return
        if not isinstance(parsed, JSONRPCRequest):
            await answer(send, 202, headers=_session_headers(record))
            return
        reply, _ = await self._run(parsed, _connection(record), exchange)
        await answer(send, 200, reply, headers=_session_headers(record))

    async def _post_plainly(self, scope: Scope, send: Send, message: dict[str, Any], exchange: Exchange) -> bool:
        """Whether the call was answered here, or refused for its session."""
        record = await self._session(scope, send, exchange)
        if record is None:
            return True
        reply = await self._plain.session(message, exchange, record.protocol_version)
        if reply is not None:
            await answer(send, reply.status, reply.body, headers=_session_headers(record))
        return reply is not None

    async def delete(self, scope: Scope, send: Send, exchange: Exchange) -> None:
        """End the session."""
        record = await self._session(scope, send, exchange)
        if record is not None:
            await self._sessions.remove(record.tenant, record.id)
            log.info("session_ended", session=record.id[:8])
            await answer(send, 200)

    async def _initialize(self, send: Send, request: JSONRPCRequest, exchange: Exchange) -> None:
        connection = Connection.for_loop(_Silent())
        reply, accepted = await self._run(request, connection, exchange)
        if not accepted or connection.client_params is None:
            await answer(send, 200, reply)
            return
        record = SessionRecord(
            id=new_session_id(),
            tenant=exchange.principal.tenant,
            subject=exchange.principal.subject,
            profile=exchange.registry.profile,
            protocol_version=connection.protocol_version,
            client=connection.client_params.model_dump(by_alias=True, mode="json", exclude_none=True),
        )
        await self._sessions.create(record, cap=exchange.registry.view.snapshot.policy.limits.sessions)
        log.info("session_opened", session=record.id[:8], protocol_version=record.protocol_version)
        await answer(send, 200, reply, headers=_session_headers(record))

    async def _session(self, scope: Scope, send: Send, exchange: Exchange) -> SessionRecord | None:
        """The session that the request names; None when it was answered here."""
        named = header(scope, SESSION_HEADER)
        if named is None:
            await answer(send, 400, invalid_request("the Mcp-Session-Id header is missing", exchange.correlation_id))
            return None
        record = await self._sessions.find(exchange.principal.tenant, named)
        owner = (exchange.principal.subject, exchange.registry.profile)
        if record is None or (record.subject, record.profile) != owner:
            gone = NotFound("session not found")
            await answer(send, 404, refusal(gone, exchange.correlation_id))
            return None
        return record

    async def _run(self, request: JSONRPCRequest, connection: Connection, exchange: Exchange) -> tuple[bytes, bool]:
        """The JSON-RPC answer to one request, and whether it is a result."""
        options = InitializationOptions(
            server_name=NAME,
            server_version=VERSION,
            capabilities=capabilities_of(exchange.registry, listens=False),
        )
        runner: ServerRunner[Any] = ServerRunner(self._server, connection, {}, init_options=options)
        reply: JSONRPCResponse | JSONRPCError
        try:
            result = await runner.on_request(_Dispatch(request.id), request.method, request.params)
            reply = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
        except Exception as error:
            reply = JSONRPCError(jsonrpc="2.0", id=request.id, error=_error_of(error, exchange))
        finally:
            await aclose_shielded(connection)
        body = reply.model_dump_json(by_alias=True, exclude_unset=True).encode()
        return body, isinstance(reply, JSONRPCResponse)


def _error_of(error: Exception, exchange: Exchange) -> ErrorData:
    """What the client may know of an exception that left the kernel."""
    known = handler_exception_to_error_data(error)
    if known is not None:
        return known
    log.error("request_failed", correlation_id=exchange.correlation_id, exc_info=error)
    data = {"code": "internal", "correlation_id": exchange.correlation_id}
    return ErrorData(code=INTERNAL_ERROR, message="Internal server error", data=data)


def _connection(record: SessionRecord) -> Connection:
    """The session's connection, as it was after its handshake."""
    connection = Connection(
        _Silent(),
        protocol_version=record.protocol_version,
        session_id=record.id,
        client_params=InitializeRequestParams.model_validate(record.client, by_name=False),
    )
    connection.initialized.set()
    return connection


def _session_headers(record: SessionRecord) -> Headers:
    return ((SESSION_HEADER, record.id.encode()),)
