"""Runs single requests through the SDK's kernel, without the SDK's transports.

No SDK connection outlives a request of its session: the session record contains what the kernel needs to make a new
one. Requests that send no message before their response share one connection per revision, except `initialize`.
"""

from collections.abc import Mapping
from typing import Any

import anyio
import structlog
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.models import InitializationOptions
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import ErrorData, InitializeRequestParams, JSONRPCRequest, ServerCapabilities
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from msgspec import structs

from gateway.domain.sessions import SessionRecord
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTool
from gateway.protocol.errors import internal_error
from gateway.protocol.http.responses import joined
from gateway.protocol.http.results import (
    STRUCTURED,
    JsonRpcReply,
    error_result,
    list_result,
    sdk_result,
    tool_result,
)
from gateway.protocol.methods.found_resources import ResourceFinder
from gateway.protocol.methods.lists import LISTS
from gateway.protocol.request_context import CURRENT_REQUEST, RawResult, RequestContext
from gateway.protocol.server_name import NAME
from gateway.registry.registry import Registry
from gateway.telemetry.distribution import VERSION

log = structlog.get_logger(__name__)


class NullOutbound:
    """A server-to-client channel that sends nothing (`mcp.shared.dispatcher.Outbound`).

    The messages of a call go through its peer, not through the SDK.
    """

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Raise `NoBackChannelError`."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Drop the notification."""
        log.debug("notification_dropped", method=method)


class OneShotDispatch(NullOutbound):
    """One inbound request as the SDK's kernel sees it (`mcp.shared.dispatcher.DispatchContext`)."""

    can_send_request = False
    transport = TransportContext(kind="streamable-http", can_send_request=False)
    message_metadata = ServerMessageMetadata()

    def __init__(self, request_id: str | int) -> None:
        self.request_id = request_id

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: a request is cancelled by cancelling its task."""
        return anyio.Event()

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing, because progress is sent through the call's peer."""


class SdkRunner:
    """Runs requests; stores no state between requests."""

    def __init__(self, server: Server[Any], finder: ResourceFinder) -> None:
        self._server = server
        self._finder = finder
        self._silent = {version: _silent_runner(server, version) for version in KNOWN_PROTOCOL_VERSIONS}

    async def run(
        self,
        request: JSONRPCRequest,
        connection: Connection,
        context: RequestContext,
        capabilities: ServerCapabilities,
    ) -> tuple[bytes, bool]:
        """Return the JSON-RPC response to any request of a session, and True if it is a result instead of an error."""
        options = InitializationOptions(server_name=NAME, server_version=VERSION, capabilities=capabilities)
        runner: ServerRunner[Any] = ServerRunner(self._server, connection, {}, init_options=options)
        try:
            found = await _ask(runner, request, context)
        finally:
            await aclose_shielded(connection)
        if isinstance(found, ErrorData):
            return joined(error_result(request.id, found, is_modern=False).body), False
        return joined(sdk_result(request.id, found).body), True

    async def run_stateless(
        self, request: JSONRPCRequest, version: str, context: RequestContext, *, session: str | None = None
    ) -> JsonRpcReply | None:
        """The response to a request; None, without any effect, if its primitive may send messages before the response.

        All other requests of a revision share one connection, which never changes. The context of the request is in
        `CURRENT_REQUEST`.

        Raises:
            ValueError: the request is `initialize` in a handshake revision, which needs a separate connection.
        """
        is_modern = version in MODERN_PROTOCOL_VERSIONS
        if request.method == "initialize" and not is_modern:  # guard: kernel-shared-connection
            raise ValueError("the handshake is not supported on this transport")
        bound = await self._bound_primitive(request, context.registry, session)
        if bound is not None and bound.is_interactive:
            return None
        is_list = request.method in LISTS
        finished = RawResult() if is_list or is_modern or version in STRUCTURED else None
        tool = bound if isinstance(bound, BoundTool) else None
        CURRENT_REQUEST.set(structs.replace(context, session=session, finished=finished, tool=tool))
        found = await _ask(self._silent[version], request, context)
        if isinstance(found, ErrorData):
            return error_result(request.id, found, is_modern=is_modern)
        if finished is not None and finished.members is not None:
            write = list_result if is_list else tool_result
            return write(request.id, finished.members, is_modern=is_modern)
        return sdk_result(request.id, found)

    async def _bound_primitive(
        self, request: JSONRPCRequest, registry: Registry, session: str | None
    ) -> BoundTool | BoundPrompt | BoundResource | None:
        """The primitive of a request; None if there is none or binding fails, which running the request reports."""
        try:
            match request.method, request.params:
                case "tools/call", {"name": str(name)}:
                    return await registry.tool(name)
                case "prompts/get", {"name": str(name)}:
                    return await registry.prompt(name)
                case "resources/read", {"uri": str(uri)}:
                    return await self._finder.find(registry, uri, session)
                case _:
                    return None
        except Exception:
            log.debug("not_bound", method=request.method)
            return None


def _silent_runner(server: Server[Any], version: str) -> ServerRunner[Any]:
    connection = Connection(NullOutbound(), protocol_version=version)
    connection.initialized.set()
    return ServerRunner(server, connection, {})


async def _ask(
    runner: ServerRunner[Any], request: JSONRPCRequest, context: RequestContext
) -> Mapping[str, Any] | ErrorData:
    try:
        return await runner.on_request(OneShotDispatch(request.id), request.method, request.params)
    except Exception as error:
        return _error_of(error, context)


def connection_of(record: SessionRecord) -> Connection:
    """The session's connection in its state after the handshake; before the handshake, a connection that waits
    for it.
    """
    if not record.is_open:
        return Connection.for_loop(NullOutbound(), session_id=record.id)
    connection = Connection(
        NullOutbound(),
        protocol_version=record.protocol_version,
        session_id=record.id,
        client_params=InitializeRequestParams.model_validate(record.client, by_name=False),
    )
    connection.initialized.set()
    return connection


def _error_of(error: Exception, context: RequestContext) -> ErrorData:
    """The error that the client may see for an exception that left the kernel."""
    sdk_error = handler_exception_to_error_data(error)
    if sdk_error is not None:
        return sdk_error
    log.error("request_failed", correlation_id=context.correlation_id, exc_info=error)
    return internal_error(context.correlation_id)
