"""The methods of the extension for tasks: `tasks/get`, `tasks/update` and `tasks/cancel`."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from mcp.server.context import HandlerResult
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, RequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from gateway.domain.audit import RuleKind
from gateway.domain.calls.mcp_tasks import McpTask, TaskOwner
from gateway.domain.identifiers import mint
from gateway.errors import CapabilityMissing, DecidingRule, NotFound
from gateway.protocol.errors import TASKS, Hidden
from gateway.protocol.methods.input_requests import is_valid_response
from gateway.protocol.request_context import CURRENT_REQUEST, SdkContext
from gateway.protocol.tasks.runs import TaskRunner
from gateway.protocol.tasks.task_objects import declares_tasks, detailed_task
from gateway.protocol.tasks.visible_tasks import find_task, owner_of


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: str


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`."""

    input_responses: dict[str, Any]


_Params = TypeVar("_Params", bound=TaskParams)
_COMPLETE = {"resultType": "complete"}


class TaskMethods:
    """Handles the methods of tasks; each names a task of the caller's subject and profile."""

    def __init__(self, runner: TaskRunner) -> None:
        self._runner = runner

    def add_to(self, server: Server[Any]) -> None:
        """Add the methods to the server."""
        server.add_request_handler("tasks/get", TaskParams, _guarded(self._get))
        server.add_request_handler("tasks/update", TaskUpdateParams, _guarded(self._update))
        server.add_request_handler("tasks/cancel", TaskParams, _guarded(self._cancel))

    async def _get(self, params: TaskParams) -> HandlerResult:
        _, task = await self._find(params)
        return {**await detailed_task(task), **_COMPLETE}

    async def _update(self, params: TaskUpdateParams) -> HandlerResult:
        owner, _ = await self._find(params)
        answers = params.input_responses
        next_round = await self._runner.records.answer(
            owner, params.task_id, answers, is_valid_response=is_valid_response, holder=mint("run")
        )
        if next_round is not None:
            await self._runner.resume(next_round)
        return _COMPLETE

    async def _cancel(self, params: TaskParams) -> HandlerResult:
        owner, _ = await self._find(params)
        await self._runner.records.cancel(owner, params.task_id)
        return _COMPLETE

    async def _find(self, params: TaskParams) -> tuple[TaskOwner, McpTask]:
        registry = CURRENT_REQUEST.get().registry
        return owner_of(registry), await find_task(self._runner.records, registry, params.task_id)


def _guarded(
    handle: Callable[[_Params], Awaitable[HandlerResult]],
) -> Callable[[SdkContext, _Params], Awaitable[HandlerResult]]:
    """Refuse clients that did not declare the extension; unknown and foreign tasks are the same error."""

    async def serve(ctx: SdkContext, params: _Params) -> HandlerResult:
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not declares_tasks(ctx):  # guard: tasks-declared
            raise CapabilityMissing(f"the client did not declare the extension {TASKS}", capability="tasks")
        try:
            return await handle(params)
        except NotFound as error:
            rule = error.rule or DecidingRule(RuleKind.UNKNOWN, words="no task of this subject and profile has this id")
            raise Hidden("Task not found", rule) from None

    return serve
