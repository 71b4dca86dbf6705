"""The method `tools/call`."""

from typing import Any, Final

from mcp.server.context import HandlerResult
from mcp_types import SERVER_INFO_META_KEY, CallToolRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.calls import result_rendering
from gateway.calls.pipeline import CallPipeline
from gateway.domain.calls.mcp_tasks import McpTask, TaskSupport
from gateway.domain.fairness.large_work import run_large
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.primitives import Family
from gateway.domain.refusals import AccountRequired
from gateway.errors import CapabilityMissing
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import InputRequired
from gateway.protocol.errors import TASKS
from gateway.protocol.http.results import STRUCTURED
from gateway.protocol.methods.account_pages import open_account_page
from gateway.protocol.methods.capabilities import hidden
from gateway.protocol.methods.content_kinds import known_blocks
from gateway.protocol.methods.limits import MAX_ECHOED_NAME_LENGTH
from gateway.protocol.methods.peers import input_required_result, peer_for_request
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.stateless.input_rounds import resume_peer
from gateway.protocol.tasks.runs import TaskRun, TaskRunner
from gateway.protocol.tasks.task_objects import created_task, declares_tasks

_FINISHED: Final[dict[str, Any]] = {
    "content": [],
    "resultType": "dev.mcp-gateway/finished",
    "_meta": {SERVER_INFO_META_KEY: {}},
}
"""Placeholder for a result whose bytes bypass the SDK. The SDK passes this shape unchanged; no client receives it."""


class Tools:
    """Handles `tools/call`."""

    def __init__(self, calls: CallPipeline, spawn: Spawn, tasks: TaskRunner | None = None) -> None:
        self._calls = calls
        self._tasks = tasks
        self._spawn = spawn

    async def call(self, ctx: SdkContext, params: CallToolRequestParams) -> HandlerResult:
        """Run one tool.

        Raises:
            Hidden: no tool has that name.
            MCPError: the state or a client response in the request is malformed.
            GatewayError: the call pipeline rejected the call; most failures become an error result instead.
        """
        context = CURRENT_REQUEST.get()
        bound = context.tool or await context.registry.tool(params.name)
        if bound is None:
            text = f"Tool not found: {params.name[:MAX_ECHOED_NAME_LENGTH]}"
            raise hidden(context.registry, Family.TOOL, params.name, text)
        try:
            if self._tasks is not None and _may_be_task(ctx, bound):
                found = await self._run_as_task(ctx, params, bound, self._tasks)
                if isinstance(found, McpTask):
                    return created_task(found)
                members = found
            else:
                async with peer_for_request(ctx, params, self._spawn, talks=bound.is_interactive) as peer:
                    members = await self._calls.run(
                        context.principal,
                        bound,
                        params.arguments or {},
                        correlation_id=context.correlation_id,
                        peer=peer,
                        lookup=context.registry,
                    )
        except InputRequired as required:
            return input_required_result(required)
        except (AccountRequired, CapabilityMissing) as error:
            if (page := await self._respond_to_error(ctx, params, error)) is not None:
                return page
            members = result_rendering.failure(error, context.correlation_id)
        version = ctx.protocol_version
        if version in MODERN_PROTOCOL_VERSIONS or version in STRUCTURED:
            members = context.registry.finish_result(members, is_modern=version in MODERN_PROTOCOL_VERSIONS)
        if context.finished is None:
            return await run_large(context.principal.tenant, len(members), _decode, members, version)
        context.finished.members = members
        return _FINISHED

    async def _respond_to_error(
        self, ctx: SdkContext, params: CallToolRequestParams, error: AccountRequired | CapabilityMissing
    ) -> dict[str, Any] | None:
        """The result that opens a page for the user; None for an error that becomes the tool's result."""
        if isinstance(error, AccountRequired):
            return await open_account_page(ctx, params, error, self._spawn)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            raise error
        return None  # handshake revisions have no such error

    async def _run_as_task(
        self, ctx: SdkContext, params: CallToolRequestParams, bound: BoundTool, tasks: TaskRunner
    ) -> bytes | McpTask:
        """Run a call that may become a task; see `TaskRunner.run`."""
        context = CURRENT_REQUEST.get()
        peer = resume_peer(ctx, params.request_state, params.input_responses, spawn=self._spawn)
        run = TaskRun(context.registry, bound, params.arguments or {}, peer, correlation=context.correlation_id)
        try:
            return await tasks.run(run, at_once=bound.task_support is TaskSupport.REQUIRED)
        finally:
            await peer.close()


def _decode(members: bytes, version: str) -> dict[str, Any]:
    """Return the result as an object of the revision."""
    result: dict[str, Any] = result_rendering.decode(members)
    result["content"] = known_blocks(result["content"], version)
    if version in MODERN_PROTOCOL_VERSIONS:
        result["resultType"] = "complete"
    elif not isinstance(result.get("structuredContent", {}), dict):
        del result["structuredContent"]  # before 2026-07-28 it had to be an object
    return result


def _may_be_task(ctx: SdkContext, bound: BoundTool) -> bool:
    """True if the client of a call accepts a task, and the tool does not forbid it.

    Raises:
        CapabilityMissing: the tool requires a task, and the client did not declare the extension.
    """
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS or bound.task_support is TaskSupport.FORBIDDEN:
        return False
    if declares_tasks(ctx):  # guard: task-for-declared-clients
        return True
    if bound.task_support is TaskSupport.REQUIRED:  # guard: task-required
        raise CapabilityMissing(f"this tool runs only as a task; the client must declare {TASKS}", capability="tasks")
    return False
