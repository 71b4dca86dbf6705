"""Tasks as the extension `io.modelcontextprotocol/tasks` writes them, and its declaration by clients."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from mcp_types import CLIENT_CAPABILITIES_META_KEY

from gateway.calls import result_rendering
from gateway.calls.result_rendering import APPROVAL_META
from gateway.domain.calls.mcp_tasks import McpTask, TaskError, TaskOutcome, TaskQuestion, TaskRounds, TaskState
from gateway.domain.fairness.large_work import run_large
from gateway.domain.json_access import as_object
from gateway.errors import GatewayError
from gateway.handlers.interfaces import InputRequest, InputRequired
from gateway.protocol.errors import TASKS, to_mcp_in
from gateway.protocol.methods.input_requests import to_wire_request
from gateway.protocol.request_context import SdkContext

POLL_MS: Final = 1000
"""Suggested time between two `tasks/get` of a client."""

_MODERN: Final = "2026-07-28"
_MS: Final = timedelta(milliseconds=1)


def declares_tasks(ctx: SdkContext) -> bool:
    """True if the request declares the extension."""
    declared: object = (ctx.meta or {}).get(CLIENT_CAPABILITIES_META_KEY)
    extensions = (as_object(declared) or {}).get("extensions")
    return TASKS in (as_object(extensions) or {})


def created_task(task: McpTask) -> dict[str, Any]:
    """The result of a call that became a task (`CreateTaskResult`)."""
    return {"resultType": "task", **_members(task)}


async def detailed_task(task: McpTask) -> dict[str, Any]:
    """The full state of a task: its open requests to the client, or its result or error; a large one uses a thread."""
    size = 0 if task.outcome is None else len(task.outcome.members or b"")
    return await run_large(task.owner.tenant, size, _detailed, task)


def _detailed(task: McpTask) -> dict[str, Any]:
    members = _members(task)
    if task.state is TaskState.INPUT_REQUIRED:
        members["inputRequests"] = {
            key: to_wire_request(InputRequest(kind=question.kind, params=question.params))
            for key, question in task.rounds.questions.items()
        }
    outcome = task.outcome
    if outcome is not None and outcome.members is not None:
        members["result"] = {**result_rendering.decode(outcome.members), "resultType": "complete"}
    elif outcome is not None and outcome.error is not None:
        members["error"] = msgspec.to_builtins(outcome.error)
    return members


def failed_outcome(error: GatewayError, task: McpTask) -> TaskOutcome:
    """The end of a task whose call raised an error."""
    found = to_mcp_in(_MODERN, error, task.correlation_id).error
    return TaskOutcome(error=TaskError(code=found.code, message=found.message, data=dict(found.data or {})))


def waiting_rounds(raised: InputRequired) -> TaskRounds:
    """The state of a call that waits for responses of the client."""
    questions = {
        key: TaskQuestion(kind=each.kind, params=dict(each.params)) for key, each in raised.input_requests.items()
    }
    state: Mapping[str, Any] = raised.state
    return TaskRounds(answers=dict(state["answers"]), memory=dict(state["memory"]), questions=questions)


def _members(task: McpTask) -> dict[str, Any]:
    members: dict[str, Any] = {
        "taskId": task.id,
        "status": task.state.value,
        "createdAt": _written(task.created_at),
        "lastUpdatedAt": _written(task.updated_at),
        "ttlMs": (task.expires_at - task.created_at) // _MS,
        "pollIntervalMs": POLL_MS,
    }
    if task.message:
        return {**members, "statusMessage": task.message}
    if task.approval is None or task.state is not TaskState.WORKING:
        return members
    return {**members, "statusMessage": _describe_wait(task.approval), "_meta": {APPROVAL_META: dict(task.approval)}}


def _describe_wait(approval: Mapping[str, str]) -> str:
    place = f" at {approval['url']}" if "url" in approval else ""
    return f"waiting for another person to approve the call: {approval['id']}, until {approval['expires_at']}{place}"


def _written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
