"""Use of the SDK beyond its documented surface; an upgrade that moves one of these fails here."""

import inspect
from importlib.metadata import version
from typing import cast

import anyio
import pytest
from mcp.server import Server
from mcp.server.auth.middleware.auth_context import auth_context_var, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken, principal_components
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp_types import InitializeRequestParams, JSONRPCRequest, RequestParams, jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gateway.protocol.methods.found_resources import ResourceFinder
from gateway.protocol.methods.sdk_runner import NullOutbound, OneShotDispatch, SdkRunner
from gateway.protocol.request_context import RequestContext
from tests.support.gateway import META

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def _server() -> Server[object]:
    async def answer(ctx: ServerRequestContext[object, object], params: RequestParams) -> HandlerResult:
        return {"said": ctx.protocol_version}

    server: Server[object] = Server("t", version="1")
    server.add_request_handler("test/say", RequestParams, answer)
    server.middleware.clear()
    return server


def _ready() -> Connection:
    params = InitializeRequestParams.model_validate(CLIENT, by_name=False)
    connection = Connection(NullOutbound(), protocol_version="2025-11-25", session_id="s", client_params=params)
    connection.initialized.set()
    return connection


def test_the_sdk_is_the_version_that_was_read() -> None:
    """Ours: these seams were checked against 2.3."""
    assert version("mcp").startswith("2.3.")


def test_the_eras_are_the_ones_we_serve() -> None:
    """MCP: four handshake revisions and one modern."""
    assert HANDSHAKE_PROTOCOL_VERSIONS == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    assert MODERN_PROTOCOL_VERSIONS == ("2026-07-28",)


async def test_a_connection_can_be_born_ready_and_serve_one_request() -> None:
    """Ours: a session needs no connection between its requests."""
    runner: ServerRunner[object] = ServerRunner(_server(), _ready(), {})

    result = await runner.on_request(OneShotDispatch(1), "test/say", {})

    assert result == {"said": "2025-11-25"}


async def test_initialize_commits_the_state_of_a_session() -> None:
    """Ours: after the handshake the connection holds version and client parameters."""
    connection = Connection.for_loop(NullOutbound())
    runner: ServerRunner[object] = ServerRunner(_server(), connection, {})

    await runner.on_request(OneShotDispatch(1), "initialize", CLIENT)

    assert connection.protocol_version == "2025-11-25"
    assert connection.client_params is not None
    assert connection.client_params.model_dump(by_alias=True, mode="json", exclude_none=True) == CLIENT


async def test_before_initialize_nothing_is_served() -> None:
    """MCP: the kernel holds the gate, not we."""
    runner: ServerRunner[object] = ServerRunner(_server(), Connection.for_loop(NullOutbound()), {})

    with pytest.raises(MCPError):
        await runner.on_request(OneShotDispatch(1), "test/say", {})


async def test_middleware_wraps_every_method_and_may_translate_its_errors() -> None:
    """Ours: one place turns our errors into the protocol's."""

    async def translate(ctx: ServerRequestContext[object, object], call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except MCPError as error:
            raise MCPError(1, "translated") from error

    server = _server()
    server.middleware[:] = [translate]
    runner: ServerRunner[object] = ServerRunner(server, _ready(), {})

    with pytest.raises(MCPError, match="translated"):
        await runner.on_request(OneShotDispatch(1), "no/such", {})


async def test_a_connection_that_many_requests_share_stays_as_it_was_made() -> None:
    """Ours: the kernel writes nothing of a request to its connection, unless it is a handshake, which is refused."""
    connection = Connection(NullOutbound(), protocol_version="2026-07-28")
    connection.initialized.set()
    runner: ServerRunner[object] = ServerRunner(_server(), connection, {})

    for number, meta in enumerate((META, {**META, "progressToken": "p"}, {})):
        reported = await runner.on_request(OneShotDispatch(number), "test/say", {"_meta": meta})
        assert reported["said"] == "2026-07-28"
    with pytest.raises(MCPError):
        await runner.on_request(OneShotDispatch(9), "initialize", CLIENT)

    assert (connection.protocol_version, connection.session_id) == ("2026-07-28", None)
    assert (connection.client_params, connection.client_capabilities, connection.state) == (None, None, {})


async def test_no_handshake_is_made_on_a_shared_connection() -> None:
    """Ours: it would make everybody's connection one client's (TEN-5)."""
    request = JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=CLIENT)

    with pytest.raises(ValueError, match="not supported on this transport"):
        await SdkRunner(_server(), cast(ResourceFinder, None)).run_stateless(
            request, "2025-11-25", cast(RequestContext, None)
        )


def test_an_exception_of_the_kernel_is_mapped_without_its_text() -> None:
    """Ours: an exception of ours is no text to the client."""
    assert handler_exception_to_error_data(RuntimeError("secret")) is None
    with pytest.raises(ValidationError) as caught:
        InitializeRequestParams.model_validate({})
    mapped = handler_exception_to_error_data(caught.value)
    assert mapped is not None
    assert mapped.data == ""


async def test_closing_a_connection_runs_its_cleanup() -> None:
    """Ours: resources that a request opened are closed with it."""
    connection, closed = _ready(), anyio.Event()
    connection.exit_stack.callback(closed.set)

    await aclose_shielded(connection)

    assert closed.is_set()


def test_the_callers_identity_is_tenant_and_subject() -> None:
    """Ours: whatever the SDK binds to a caller is bound to both."""
    token = AccessToken(token="", client_id="ten_a/alice", scopes=[], subject="alice")
    reset = auth_context_var.set(AuthenticatedUser(token))
    try:
        assert get_access_token() is token
    finally:
        auth_context_var.reset(reset)
    assert principal_components(token) == ("ten_a/alice", None, "alice")


def test_a_batch_is_no_message() -> None:
    """MCP: the adapter that parses sessions' messages takes one object."""
    with pytest.raises(ValidationError):
        jsonrpc_message_adapter.validate_python([{"jsonrpc": "2.0", "id": 1, "method": "ping"}], by_name=False)


def test_a_modern_body_without_header_is_classified() -> None:
    """MCP: the ladder that judges the modern envelope is callable from outside."""
    verdict = classify_inbound_request({"method": "tools/list", "params": {"_meta": META}}, headers={})

    assert isinstance(verdict, InboundLadderRejection)
    assert verdict.code == -32020


def test_the_sdks_manager_accepts_our_settings() -> None:
    """Ours: stateless, JSON, our own body limit."""
    parameters = inspect.signature(StreamableHTTPSessionManager).parameters

    assert {"app", "json_response", "stateless", "max_request_body_size"} <= set(parameters)
