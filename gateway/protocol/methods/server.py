"""The SDK server with the MCP methods, except those of sessions, which `gateway.protocol.app` adds.

One server serves all tenants; its handlers read the tenant from `CURRENT_REQUEST`.
"""

from typing import Any

from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp_types import DiscoverResult, RequestParams, SubscriptionsListenRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.protocol.errors import TASKS
from gateway.protocol.methods.capabilities import capabilities_of
from gateway.protocol.methods.error_translation import ErrorTranslation
from gateway.protocol.methods.found_resources import ResourceFinder
from gateway.protocol.methods.lists import LIST_TTL_MS
from gateway.protocol.methods.primitive_methods import add_primitive_methods
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.server_name import NAME
from gateway.protocol.stateless.subscription_stream import SubscriptionStreams
from gateway.protocol.tasks.methods import TaskMethods
from gateway.protocol.tasks.runs import TaskRunner
from gateway.telemetry.distribution import VERSION


def build_server(
    tasks: TaskRunner, subscriptions: SubscriptionStreams, finder: ResourceFinder, *, spawn: Spawn
) -> Server[Any]:
    """Build the server of all tenants; it stores no state of any client."""
    calls = tasks.calls
    server: Server[Any] = Server(NAME, version=VERSION, get_tool_input_schema=_mirrored_schema)
    add_primitive_methods(server, calls, finder.find, spawn=spawn, tasks=tasks)
    server.add_request_handler("server/discover", RequestParams, _discover)
    server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, subscriptions.serve)
    TaskMethods(tasks).add_to(server)
    # No OpenTelemetry middleware: it costs 30 µs a message and is useful only with an exporter.
    server.middleware[:] = [ErrorTranslation(calls.audit)]
    return server


def _mirrored_schema(name: str) -> dict[str, Any] | None:
    """The schema lookup that the SDK calls before a tool call; it passes only the tool's name."""
    return CURRENT_REQUEST.get().registry.mirrored_schema(name)


async def _discover(_: SdkContext, __: RequestParams) -> HandlerResult:
    capabilities = capabilities_of(CURRENT_REQUEST.get().registry)
    return DiscoverResult(
        supported_versions=list(MODERN_PROTOCOL_VERSIONS),
        capabilities=capabilities.model_copy(update={"extensions": {TASKS: {}}}),
        ttl_ms=LIST_TTL_MS,
        cache_scope="private",
    )
