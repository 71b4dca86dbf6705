"""The SDK server with the MCP methods, except those of sessions, which `gateway.protocol.app` adds.

One server serves all tenants; its handlers read the tenant from `CURRENT_REQUEST`.
"""

from typing import Any

import structlog
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    DiscoverResult,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    SubscriptionsListenRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gateway.calls.pipeline import CallPipeline
from gateway.domain.task_supervisor import Spawn
from gateway.errors import GatewayError
from gateway.protocol.errors import internal_error, invalid_params, to_mcp_in, with_code
from gateway.protocol.methods.capabilities import capabilities_of
from gateway.protocol.methods.completion import Completion
from gateway.protocol.methods.lists import LIST_TTL_MS, LISTS, answer_list
from gateway.protocol.methods.prompts import Prompts
from gateway.protocol.methods.resources import Resources
from gateway.protocol.methods.tools import Tools
from gateway.protocol.request_context import CURRENT_REQUEST
from gateway.protocol.server_name import NAME, VERSION
from gateway.protocol.stateless.subscription_stream import SubscriptionStreams
from gateway.redis.caches.result_overflow import ResultOverflow

log = structlog.get_logger(__name__)

Context = ServerRequestContext[Any, Any]


def build_server(
    calls: CallPipeline, subscriptions: SubscriptionStreams, overflow: ResultOverflow, *, spawn: Spawn
) -> Server[Any]:
    """Build the server of all tenants; it stores no state of any client."""
    server: Server[Any] = Server(NAME, version=VERSION, get_tool_input_schema=_mirrored_schema)
    for method in LISTS:
        server.add_request_handler(method, PaginatedRequestParams, answer_list)
    server.add_request_handler("tools/call", CallToolRequestParams, Tools(calls, spawn).call)
    server.add_request_handler("resources/read", ReadResourceRequestParams, Resources(calls, overflow, spawn).read)
    server.add_request_handler("prompts/get", GetPromptRequestParams, Prompts(calls, spawn).get)
    server.add_request_handler("completion/complete", CompleteRequestParams, Completion(calls).complete)
    server.add_request_handler("server/discover", RequestParams, _discover)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, subscriptions.serve)
    server.middleware[:] = [_translate]  # no OpenTelemetry middleware: 30 µs a message, useful only with an exporter
    return server


def _mirrored_schema(name: str) -> dict[str, Any] | None:
    """The schema lookup that the SDK calls before a tool call; it passes only the tool's name."""
    return CURRENT_REQUEST.get().registry.mirrored_schema(name)


async def _translate(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Translate gateway errors into MCP errors, and any other exception into an internal error without details."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        raise with_code(error, CURRENT_REQUEST.get().correlation_id) from None
    except ValidationError as error:
        raise invalid_params(error, CURRENT_REQUEST.get().correlation_id) from None
    except GatewayError as error:
        raise to_mcp_in(ctx.protocol_version, error, CURRENT_REQUEST.get().correlation_id) from None
    except Exception:
        correlation_id = CURRENT_REQUEST.get().correlation_id
        log.exception("method_failed", method=ctx.method, correlation_id=correlation_id)
        raise MCPError.from_error_data(internal_error(correlation_id)) from None


async def _discover(_: Context, __: RequestParams) -> HandlerResult:
    return DiscoverResult(
        supported_versions=list(MODERN_PROTOCOL_VERSIONS),
        capabilities=capabilities_of(CURRENT_REQUEST.get().registry),
        ttl_ms=LIST_TTL_MS,
        cache_scope="private",
    )
