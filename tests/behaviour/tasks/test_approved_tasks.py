"""Approvals of calls whose client accepts tasks: the task waits, on whichever replica, and the call runs once."""

import asyncio
from dataclasses import replace

import anyio
import httpx
import pytest

from tests.behaviour.tasks.conftest import Pair
from tests.support.replicas import until
from tests.support.tasks import TaskClient


@pytest.fixture
async def strict(clients: tuple[TaskClient, TaskClient]) -> tuple[TaskClient, TaskClient]:
    """Clients of a tenant whose moderate calls need an approval."""
    at_a, at_b = clients
    policy = {"moderate": "approve", "dangerous": "approve"}
    (await at_a.gateway.admin.patch(f"/tenants/{at_a.slug}/policy", json=policy)).raise_for_status()
    return at_a, at_b


async def _pending(at: TaskClient) -> str:
    """The id of the only approval of the tenant, once it is there."""
    found: list[str] = []

    async def is_there() -> bool:
        answer: httpx.Response = await at.gateway.admin.get(f"/tenants/{at.slug}/approvals")
        found[:] = [one["id"] for one in answer.json()["items"]]
        return bool(found)

    await until(is_there)
    assert len(found) == 1
    return found[0]


async def _is_described(at: TaskClient, task: str, approval: str) -> bool:
    """True if the task names its approval and the page of the decision."""
    members = await at.get(task)
    named = members.get("_meta", {}).get("gateway/approval", {})
    return (
        members["status"] == "working"
        and (named.get("id"), named.get("state")) == (approval, "pending")
        and all(named[part] in members["statusMessage"] for part in ("id", "expires_at"))
    )


async def _approve(at: TaskClient, approval: str) -> None:
    (await at.gateway.admin.post(f"/tenants/{at.slug}/approvals/{approval}/approve", json={})).raise_for_status()


async def test_a_call_that_needs_an_approval_becomes_a_task(pair: Pair, strict: tuple[TaskClient, TaskClient]) -> None:
    """Ours: the task names its approval while a person decides, and its result is that of the approved call (SAF-3)."""
    at_a, at_b = strict

    created = await at_a.call("create_pet", body={"name": "Rex"})

    assert (created["resultType"], created["status"]) == ("task", "working")
    assert pair.upstream.seen == []
    approval = await _pending(at_b)
    await until(lambda: _is_described(at_b, created["taskId"], approval))
    await _approve(at_b, approval)
    ended = await at_b.wait(created["taskId"])
    assert (ended["status"], ended.get("statusMessage")) == ("completed", None)
    assert "gateway/approval" not in ended["_meta"]
    assert [seen.method for seen in pair.upstream.seen] == ["POST"]


async def test_a_denied_task_ends_with_the_refusal(pair: Pair, strict: tuple[TaskClient, TaskClient]) -> None:
    """Ours: a denial is an error result, and nothing is sent (SAF-3)."""
    at_a, _ = strict
    task = await at_a.start("create_pet", body={"name": "Rex"})
    approval = await _pending(at_a)

    (await at_a.gateway.admin.post(f"/tenants/{at_a.slug}/approvals/{approval}/deny", json={})).raise_for_status()

    assert (await at_a.wait(task))["result"]["isError"] is True
    assert pair.upstream.seen == []


async def test_a_waiting_task_survives_its_replica(pair: Pair, strict: tuple[TaskClient, TaskClient]) -> None:
    """Ours: another replica attaches to the same approval, and the call runs once (SAF-3, SAF-7)."""
    at_a, at_b = strict
    task = await at_a.start("create_pet", body={"name": "Rex"})
    approval = await _pending(at_b)
    pair.replicas.a.kill()
    await pair.end_leases(task)

    async def is_taken() -> bool:
        held = "select leased_until > now() from mcp_tasks where id = $1"
        return bool(await pair.owner.fetchval(held, task))

    await until(is_taken)
    assert await _pending(at_b) == approval
    await _approve(at_b, approval)

    assert (await at_b.wait(task))["status"] == "completed"
    assert [seen.method for seen in pair.upstream.seen] == ["POST"]


async def test_an_approved_task_that_was_sent_is_not_run_again(
    pair: Pair, strict: tuple[TaskClient, TaskClient]
) -> None:
    """Ours: after the approval was used, a kill leaves an unknown outcome, and no second request (SAF-3, SAF-7)."""
    at_a, at_b = strict
    pair.upstream.gate = asyncio.Event()
    task = await at_a.start("create_pet", body={"name": "Rex"})
    await _approve(at_b, await _pending(at_b))
    with anyio.fail_after(10):
        await pair.upstream.arrived.wait()
    seen = pair.upstream.seen
    pair.replicas.a.kill()

    await pair.end_leases(task)

    ended = await replace(at_b).wait(task)
    assert ended["status"] == "failed"
    assert [each.method for each in seen] == ["POST"]
