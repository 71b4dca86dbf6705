"""What each MCP method answers: one SDK server for all tenants, which reads the tenant from the current exchange.

Resources, prompts and completion have no handlers yet, so the SDK answers them with "method not found".
"""

from typing import Any

import msgspec
import structlog
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolRequestParams,
    DiscoverResult,
    PaginatedRequestParams,
    RequestParams,
    ServerCapabilities,
    SubscriptionsListenRequestParams,
    ToolsCapability,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gateway.calls.run import Calls
from gateway.errors import GatewayError
from gateway.protocol.current import CURRENT
from gateway.protocol.errors import to_mcp
from gateway.protocol.identity import NAME, VERSION
from gateway.protocol.listen import Listens
from gateway.registry.registry import Registry

log = structlog.get_logger(__name__)

LIST_TTL_MS = 1000

Context = ServerRequestContext[Any, Any]


def capabilities_of(_: Registry, *, listens: bool) -> ServerCapabilities:
    """What a connection with this registry can use; `listens` says whether its era has streams here."""
    return ServerCapabilities(tools=ToolsCapability(list_changed=listens or None))


def build_server(calls: Calls, listens: Listens) -> Server[Any]:
    """The one server; it keeps no state of anybody."""

    async def call_tool(ctx: Context, params: CallToolRequestParams) -> HandlerResult:
        return await _call_tool(calls, ctx, params)

    server: Server[Any] = Server(NAME, version=VERSION, get_tool_input_schema=_mirrored_schema)
    server.add_request_handler("tools/list", PaginatedRequestParams, _list_tools)
    server.add_request_handler("tools/call", CallToolRequestParams, call_tool)
    server.add_request_handler("server/discover", RequestParams, _discover)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listens.serve)
    server.middleware[:] = [_translate]  # without OpenTelemetry's: 30 µs a message, wanted only with an exporter
    return server


def _mirrored_schema(name: str) -> dict[str, Any] | None:
    """What the SDK asks before a call: it hands us nothing but the tool's name."""
    return CURRENT.get().registry.mirrored_schema(name)


async def _translate(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Let out only what is meant for the client: our errors in its terms, everything else as a bare code."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except GatewayError as error:
        raise to_mcp(error, CURRENT.get().correlation_id) from None
    except Exception:
        correlation_id = CURRENT.get().correlation_id
        log.exception("method_failed", method=ctx.method, correlation_id=correlation_id)
        data = {"code": "internal", "correlation_id": correlation_id}
        raise MCPError(INTERNAL_ERROR, "Internal server error", data) from None


async def _list_tools(_: Context, params: PaginatedRequestParams) -> HandlerResult:
    registry = CURRENT.get().registry
    page = registry.page(params.cursor)
    result: dict[str, Any] = {
        "tools": [registry.definition(tool) for tool in page.tools],
        "resultType": "complete",
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    }
    if page.next_cursor is not None:
        result["nextCursor"] = page.next_cursor
    return result


async def _call_tool(calls: Calls, ctx: Context, params: CallToolRequestParams) -> HandlerResult:
    exchange = CURRENT.get()
    bound = await exchange.registry.tool(params.name)
    if bound is None:
        raise MCPError(INVALID_PARAMS, f"Tool not found: {params.name[:128]}")
    members = await calls.run(exchange.principal, bound, params.arguments or {}, correlation_id=exchange.correlation_id)
    result: dict[str, Any] = msgspec.json.decode(b"{" + members + b"}")
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        result["resultType"] = "complete"
    elif not isinstance(result.get("structuredContent", {}), dict):
        del result["structuredContent"]  # before 2026-07-28 it had to be an object
    return result


async def _discover(_: Context, __: RequestParams) -> HandlerResult:
    return DiscoverResult(
        supported_versions=list(MODERN_PROTOCOL_VERSIONS),
        capabilities=capabilities_of(CURRENT.get().registry, listens=True),
        ttl_ms=LIST_TTL_MS,
        cache_scope="private",
    )
