"""The MCP methods of primitives, which every server has: lists, calls, reads, prompts and completion."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
)

from gateway.calls.pipeline import CallPipeline
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.protocol.methods.completion import CompletionMethod
from gateway.protocol.methods.lists import LISTS, respond_with_list
from gateway.protocol.methods.prompts import Prompts
from gateway.protocol.methods.resources import FindResource, Resources
from gateway.protocol.methods.tools import Tools
from gateway.protocol.tasks.runs import TaskRunner


def add_primitive_methods(
    server: Server[Any], calls: CallPipeline, find: FindResource, *, spawn: Spawn, tasks: TaskRunner | None = None
) -> None:
    """Add the methods; without `tasks`, no call becomes a task."""
    for method in LISTS:
        server.add_request_handler(method, PaginatedRequestParams, respond_with_list)
    server.add_request_handler("tools/call", CallToolRequestParams, Tools(calls, spawn, tasks).call)
    server.add_request_handler("resources/read", ReadResourceRequestParams, Resources(calls, spawn, find).read)
    server.add_request_handler("prompts/get", GetPromptRequestParams, Prompts(calls, spawn).get)
    server.add_request_handler("completion/complete", CompleteRequestParams, CompletionMethod(calls).complete)
