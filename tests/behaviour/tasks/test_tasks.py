"""Calls that become tasks (`io.modelcontextprotocol/tasks`), as a client of 2026-07-28 sees them."""

import asyncio
from dataclasses import replace
from functools import partial

import anyio
import pytest

from gateway.store.database.connection import connect_owner
from tests.support.gateway import RunningGateway
from tests.support.primitives import add_profile
from tests.support.replicas import until
from tests.support.servers import TestDatabase
from tests.support.tasks import TASKS, TaskClient, accept
from tests.support.upstream import RecordingUpstream


async def test_a_slow_call_becomes_a_task_and_its_result_is_kept(
    client: TaskClient, upstream: RecordingUpstream
) -> None:
    """MCP: a call that does not end soon is answered with a flat task, and `tasks/get` has its result (SAF-7)."""
    upstream.gate = asyncio.Event()

    created = await client.call("get_pet", id=1)

    assert created["resultType"] == "task"
    assert created["status"] == "working"
    assert created["ttlMs"] > 0
    assert created["createdAt"].endswith("Z")
    assert not {"result", "error", "inputRequests", "requestState", "task"} & created.keys()
    assert (await client.get(created["taskId"]))["status"] == "working"
    upstream.gate.set()
    ended = await client.wait(created["taskId"])
    assert ended["status"] == "completed"
    assert ended["resultType"] == "complete"
    assert ended["result"]["structuredContent"] == {"ok": True}
    assert len(upstream.seen) == 1


async def test_a_call_that_ends_soon_is_no_task(client: TaskClient) -> None:
    """Ours: a client that accepts tasks gets the result of a quick call at once (SAF-7)."""
    assert (await client.call("quick"))["resultType"] == "complete"
    assert (await client.call("get_pet", id=1))["structuredContent"] == {"ok": True}


async def test_only_a_client_that_declared_tasks_in_the_request_gets_one(
    client: TaskClient, upstream: RecordingUpstream
) -> None:
    """MCP: no task without the extension; a tool that requires one is refused with -32021 (SAF-7)."""
    plain = replace(client, capabilities={"elicitation": {}})

    refused = await plain.send("tools/call", {"name": "reads", "arguments": {}})

    assert refused["error"]["code"] == -32021
    assert refused["error"]["data"]["requiredCapabilities"] == {"extensions": {TASKS: {}}}
    assert upstream.seen == []
    for method in ("get", "update", "cancel"):
        answer = await plain.send(f"tasks/{method}", {"taskId": "tsk_any", "inputResponses": {}})
        assert answer["error"]["code"] == -32021
    upstream.gate = asyncio.Event()
    async with anyio.create_task_group() as group:

        async def call() -> None:
            assert (await plain.call("get_pet", id=1))["resultType"] == "complete"

        group.start_soon(call)
        with anyio.fail_after(5):
            await upstream.arrived.wait()
        await anyio.sleep(0.6)  # longer than a call of the others takes to become a task
        upstream.gate.set()


async def test_a_tool_that_forbids_tasks_makes_none(client: TaskClient, upstream: RecordingUpstream) -> None:
    """Ours: `taskSupport: forbidden` holds, however long the call takes (SAF-7)."""
    upstream.gate = asyncio.Event()
    async with anyio.create_task_group() as group:

        async def call() -> None:
            assert (await client.call("never_a_task"))["resultType"] == "complete"

        group.start_soon(call)
        with anyio.fail_after(5):
            await upstream.arrived.wait()
        await anyio.sleep(0.6)  # longer than other calls take to become a task
        upstream.gate.set()


async def test_questions_of_a_task_are_answered_one_at_a_time(client: TaskClient) -> None:
    """MCP: answers come by `tasks/update`, in any number; answered ones are gone, unknown keys ignored (SAF-7)."""
    task = await client.start("asks_both")
    asked = await client.wait(task, "input_required")

    assert set(asked["inputRequests"]) == {"first", "second"}
    assert asked["inputRequests"]["first"]["method"] == "elicitation/create"
    acknowledged = await client.update(task, first=accept(name="Ada"), other={"anything": 1})
    assert {key for key in acknowledged["result"] if key != "_meta"} == {"resultType"}
    asked = await client.get(task)
    assert (asked["status"], set(asked["inputRequests"])) == ("input_required", {"second"})
    await client.update(task, first=accept(name="Eve"))
    await client.update(task, second=accept(name="Lovelace"))
    ended = await client.wait(task)
    assert ended["result"]["content"][0]["text"] == "Ada Lovelace"


async def test_a_task_may_ask_again_after_an_answer(client: TaskClient) -> None:
    """MCP: input_required and working take turns (SAF-7)."""
    task = await client.start("asks_twice")
    await client.wait(task, "input_required")
    await client.update(task, first=accept(name="Ada"))

    async def asks_for_the_second() -> bool:
        return set((await client.get(task)).get("inputRequests", {})) == {"second"}

    await until(asks_for_the_second)
    await client.update(task, second=accept(name="Lovelace"))
    assert (await client.wait(task))["result"]["content"][0]["text"] == "Ada Lovelace"


async def test_steps_before_a_question_run_once(client: TaskClient, upstream: RecordingUpstream) -> None:
    """Ours: between its rounds a task remembers what its call has done (SAF-4)."""
    task = await client.start("writes_then_asks")
    await client.wait(task, "input_required")
    await client.update(task, first=accept(name="Ada"))

    assert (await client.wait(task))["status"] == "completed"
    assert [seen.method for seen in upstream.seen] == ["POST"]


async def test_questions_before_a_task_are_answered_by_calling_again(
    client: TaskClient, upstream: RecordingUpstream
) -> None:
    """MCP: rounds of a call come first; the call that goes on then becomes the task (SAF-7)."""
    upstream.gate = asyncio.Event()

    asked = await client.call("asks_first")
    assert asked["resultType"] == "input_required"
    again = {"inputResponses": {"first": accept(name="Ada")}, "requestState": asked["requestState"]}
    created = (await client.send("tools/call", {"name": "asks_first", "arguments": {}, **again}))["result"]

    assert created["resultType"] == "task"
    assert not {"requestState", "inputRequests"} & created.keys()
    upstream.gate.set()
    assert (await client.wait(created["taskId"]))["result"]["content"][0]["text"] == "Ada"


async def test_an_error_of_the_tool_completes_and_one_of_the_protocol_fails(client: TaskClient) -> None:
    """MCP: `failed` is for JSON-RPC errors only (SAF-7)."""
    errs, roots = await client.start("errs"), await client.start("roots")

    completed, failed = await client.wait(errs), await client.wait(roots)

    assert (completed["status"], completed["result"]["isError"]) == ("completed", True)
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == -32021
    assert "result" not in failed


async def test_a_cancelled_task_ends_its_call(client: TaskClient, upstream: RecordingUpstream) -> None:
    """MCP: a cancellation is acknowledged, also one of a task that has ended, and the call stops (SAF-7)."""
    upstream.gate = asyncio.Event()
    task = await client.start("reads")
    with anyio.fail_after(5):
        await upstream.arrived.wait()

    acknowledged = await client.cancel(task)

    assert {key for key in acknowledged["result"] if key != "_meta"} == {"resultType"}
    assert (await client.wait(task))["status"] == "cancelled"
    assert "result" in await client.cancel(task)
    upstream.gate.set()
    assert (await client.get(task))["status"] == "cancelled"


async def test_the_declaration_is_in_discover_only(client: TaskClient) -> None:
    """MCP: the extension is in the capabilities, the slot of 2025-11-25 is not (SAF-7)."""
    found = (await client.send("server/discover", {}))["result"]["capabilities"]

    assert found["extensions"] == {TASKS: {}}
    assert "tasks" not in found


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_methods_of_the_experimental_tasks_do_not_exist(client: TaskClient, method: str) -> None:
    """MCP: a method that the extension removed is unknown (SAF-7)."""
    assert (await client.send(method, {"taskId": "tsk_any"}))["error"]["code"] == -32601


async def test_the_header_has_to_name_the_task(client: TaskClient) -> None:
    """MCP: `Mcp-Name` repeats the id of the task, or the request is refused with -32020 (SAF-7)."""
    task = await client.start("errs")

    for named in ("tsk_other", ""):
        answer = await client.send("tasks/get", {"taskId": task}, mcp_name=named)
        assert answer["error"]["code"] == -32020


async def test_a_revoked_key_ends_its_tasks(
    gateway: RunningGateway, client: TaskClient, upstream: RecordingUpstream
) -> None:
    """Ours: a task has the authority of its key only as long as the key is valid (TEN-1)."""
    upstream.gate = asyncio.Event()
    running, waiting = await client.start("reads"), await client.start("asks")
    await client.wait(waiting, "input_required")
    other = replace(client, key=await gateway.create_key("acme", subject="ada"))
    keys = (await gateway.admin.get("/tenants/acme/keys")).json()["items"]
    mine = next(key["id"] for key in keys if client.key.split("_")[2] in key["id"])

    (await gateway.admin.post(f"/tenants/acme/keys/{mine}/revoke")).raise_for_status()

    assert (await other.wait(running))["status"] == "cancelled"
    assert (await other.update(waiting, first=accept(name="Ada"))).keys() >= {"result"}
    ended = await other.wait(waiting)
    assert (ended["status"], "key" in ended["error"]["message"]) == ("failed", True)


async def test_a_run_that_lost_its_lease_has_no_effects(
    client: TaskClient, database: TestDatabase, upstream: RecordingUpstream
) -> None:
    """Ours: only the holder of the lease records an intent, so a task that was taken is not run twice (SAF-7)."""
    confirm = {"moderate": "confirm", "dangerous": "confirm"}
    (await client.gateway.admin.patch("/tenants/acme/policy", json=confirm)).raise_for_status()
    task = await client.start("writes")
    asked = await client.wait(task, "input_required")
    answers = {key: accept(confirm=True) for key in asked["inputRequests"]}
    owner = await connect_owner(database.superuser_url)
    async with anyio.create_task_group() as group:
        await owner.execute("begin")
        await owner.execute("lock table keys in access exclusive mode")
        group.start_soon(partial(client.update, task, **answers))

        async def is_leased() -> bool:
            return bool(await owner.fetchval("select holder <> '' from mcp_tasks where id = $1", task))

        await until(is_leased)  # the next round waits for its key
        await owner.execute("update mcp_tasks set holder = 'thief' where id = $1", task)
        await owner.execute("commit")
    await owner.close()

    async def is_recorded() -> bool:
        trail = (await client.gateway.admin.get("/tenants/acme/audit")).json()["items"]
        return any(entry["outcome"] in {"conflict", "ok"} and entry["action"] == "call" for entry in trail)

    await until(is_recorded)
    assert upstream.seen == []


async def test_a_database_that_is_lost_before_any_effect_fails_no_task(
    client: TaskClient, database: TestDatabase, upstream: RecordingUpstream
) -> None:
    """Ours: nothing was done, so the task goes on once PostgreSQL answers, and asks for its approval (SAF-3, SAF-7)."""
    admin = client.gateway.admin
    (await admin.patch("/tenants/acme/policy", json={"moderate": "approve"})).raise_for_status()
    owner = await connect_owner(database.superuser_url)
    await owner.execute("begin")
    await owner.execute("lock table approvals in access exclusive mode")
    task = await client.start("create_pet", body={"name": "Rex"})
    waiting = "wait_event_type = 'Lock' and query like '%approvals%' and pid <> pg_backend_pid()"
    assert await owner.fetchval(
        f"select bool_or(pg_terminate_backend(pid, 5000)) from pg_stat_activity where {waiting}"
    )
    await owner.execute("commit")
    await owner.close()

    async def is_asked() -> bool:
        found = (await admin.get("/tenants/acme/approvals")).raise_for_status().json()["items"]
        return [one["state"] for one in found] == ["pending"]

    await until(is_asked)
    assert ((await client.get(task))["status"], upstream.seen) == ("working", [])


async def test_a_tool_that_is_gone_fails_its_waiting_task(gateway: RunningGateway, client: TaskClient) -> None:
    """Ours: the next round of a task runs the tool as it is then, or not at all (SAF-4)."""
    task = await client.start("asks")
    await client.wait(task, "input_required")
    (await gateway.admin.delete("/tenants/acme/tools/asks")).raise_for_status()

    await client.update(task, first=accept(name="Ada"))

    assert (await client.wait(task))["error"]["data"]["code"] == "not_found"


async def test_a_policy_that_denies_is_obeyed_by_the_next_round(gateway: RunningGateway, client: TaskClient) -> None:
    """Ours: a task is no way around a policy that was tightened meanwhile (SAF-2)."""
    task = await client.start("asks")
    await client.wait(task, "input_required")
    (await gateway.admin.patch("/tenants/acme/policy", json={"safe": "deny"})).raise_for_status()

    await client.update(task, first=accept(name="Ada"))

    ended = await client.wait(task)
    assert ended["result"]["isError"] is True
    assert "policy" in ended["result"]["content"][0]["text"]


async def test_a_confirmation_is_a_question_of_the_task(
    gateway: RunningGateway, client: TaskClient, upstream: RecordingUpstream
) -> None:
    """Ours: a tool that requires a task asks for the confirmation in the task, and does nothing before (SAF-2)."""
    (
        await gateway.admin.patch("/tenants/acme/policy", json={"moderate": "confirm", "dangerous": "confirm"})
    ).raise_for_status()
    task = await client.start("writes")
    asked = await client.wait(task, "input_required")

    assert upstream.seen == []
    await client.update(task, **{key: accept(confirm=True) for key in asked["inputRequests"]})

    assert (await client.wait(task))["status"] == "completed"
    assert [seen.method for seen in upstream.seen] == ["POST"]


async def test_a_task_belongs_to_its_subject_and_profile(gateway: RunningGateway, client: TaskClient) -> None:
    """Ours: another key of the subject has the task, at the URL of its profile only (TEN-1)."""
    await add_profile(gateway, "acme", "all")
    task = await client.start("errs")
    await client.wait(task)
    same = replace(client, key=await gateway.create_key("acme", subject="ada"))

    assert (await same.get(task))["status"] == "completed"
    elsewhere = await replace(same, slug="acme/all").send("tasks/get", {"taskId": task})
    assert elsewhere["error"]["code"] == -32602


async def test_a_client_that_leaves_before_the_task_cancels_its_call(
    client: TaskClient, upstream: RecordingUpstream
) -> None:
    """MCP: a disconnect before the response is a cancellation (SAF-7)."""
    upstream.gate = asyncio.Event()

    with anyio.move_on_after(0.3):
        await client.call("get_pet", id=1)

    async def is_recorded() -> bool:
        trail = (await client.gateway.admin.get("/tenants/acme/audit")).json()["items"]
        return any(entry["outcome"] == "cancelled" for entry in trail)

    await until(is_recorded)
