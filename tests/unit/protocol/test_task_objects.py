"""Tasks as clients read them."""

from datetime import UTC, datetime

import pytest

from gateway.domain.calls.mcp_tasks import McpTask, TaskCall, TaskOwner, TaskRounds, TaskState
from gateway.domain.identifiers import KeyId, TaskId, TenantId
from gateway.protocol.tasks.task_objects import created_task, detailed_task

_NOW = datetime(2026, 11, 28, tzinfo=UTC)
_APPROVAL = {"id": "apr_1", "state": "pending", "expires_at": "2026-11-29T00:00:00Z"}


def _task(state: TaskState = TaskState.WORKING, message: str = "", url: str = "") -> McpTask:
    """A task that waits for an approval, or did before it ended."""
    return McpTask(
        id=TaskId("tsk_1"),
        owner=TaskOwner(tenant=TenantId("ten_1"), subject="anna", profile="default"),
        key=KeyId("key_1"),
        tool="pay",
        correlation_id="c",
        state=state,
        message=message,
        created_at=_NOW,
        updated_at=_NOW,
        expires_at=_NOW,
        holder="",
        call=TaskCall(arguments={}, capabilities={}),
        rounds=TaskRounds(),
        approval=_APPROVAL | ({"url": url} if url else {}),
    )


@pytest.mark.parametrize("url", ["", "https://gateway.example/approvals/apr_1"])
def test_a_task_names_the_approval_for_which_it_waits(url: str) -> None:
    """Ours: its id, its end, and the page where a person decides (SAF-3)."""
    found = created_task(_task(url=url))
    place = f" at {url}" if url else ""
    waits = "waiting for another person to approve the call: apr_1, until 2026-11-29T00:00:00Z"
    assert found["statusMessage"] == waits + place
    assert found["_meta"]["gateway/approval"] == _APPROVAL | ({"url": url} if url else {})


async def test_a_task_that_no_longer_waits_names_no_approval() -> None:
    """Ours: the approval is that of an earlier moment (SAF-3)."""
    asked = await detailed_task(_task(TaskState.INPUT_REQUIRED))
    ended = await detailed_task(_task(TaskState.FAILED, "it failed"))
    assert "_meta" not in {**asked, **ended}
    assert "statusMessage" not in asked
    assert ended["statusMessage"] == "it failed"
