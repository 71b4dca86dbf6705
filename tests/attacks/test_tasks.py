"""Tasks in foreign or hostile hands: guessed and stolen ids, floods, and messages that are no answers."""

from base64 import b64encode
from dataclasses import replace
from typing import Any

import anyio
import pytest

from gateway.catalog.calls.limits import MAX_OPEN_EACH
from tests.behaviour.tasks.conftest import client, furnish
from tests.support.gateway import RunningGateway
from tests.support.primitives import add_profile
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.tasks import TaskClient, accept
from tests.support.upstream import RecordingUpstream

__all__ = ["client", "common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tasks/get", {}),
    ("tasks/update", {"inputResponses": {"first": accept(name="Eve")}}),
    ("tasks/cancel", {}),
)


async def test_a_foreign_task_is_one_that_does_not_exist(
    gateway: RunningGateway, client: TaskClient, upstream: RecordingUpstream
) -> None:
    """Ours: another tenant, subject or profile gets the answer to an unknown id, word for word (TEN-1, TEN-5)."""
    await furnish(gateway, "globex", upstream)
    await add_profile(gateway, "acme", "all")
    foreigners = (
        TaskClient(gateway, "globex", await gateway.create_key("globex", subject="ada")),
        replace(client, key=await gateway.create_key("acme", subject="eve")),
        replace(client, slug="acme/all"),
    )
    task = await client.start("asks")
    await client.wait(task, "input_required")

    for foreigner in foreigners:
        for method, more in METHODS:
            answers = [
                await foreigner.send(method, {"taskId": named, **more})
                for named in (task, "tsk_" + "0" * 32, task[:-1], "")
            ]
            reported = [(answer["error"]["code"], answer["error"]["message"]) for answer in answers]
            assert reported == [(-32602, "Task not found")] * 4

    asked = await client.get(task)
    assert (asked["status"], set(asked["inputRequests"])) == ("input_required", {"first"})


@pytest.mark.parametrize("named", ["\x00", "tsk_'; drop table mcp_tasks; --", "tsk_" + "é" * 32, "x" * 5000])
async def test_an_id_of_any_form_is_only_unknown(client: TaskClient, named: str) -> None:
    """Ours: no id reaches PostgreSQL that was not made here (TEN-5)."""
    header = f"=?base64?{b64encode(named.encode()).decode()}?="
    for method, more in METHODS:
        answer = await client.send(method, {"taskId": named, **more}, mcp_name=header)
        assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "Task not found")


@pytest.mark.parametrize("named", [7, None, [], {"a": 1}, True])
async def test_an_id_that_is_no_text_is_refused(client: TaskClient, named: Any) -> None:
    """Ours: a wrong type is an error of the request (TEN-5)."""
    for method, more in METHODS:
        answer = await client.send(method, {"taskId": named, **more}, mcp_name=str(named))
        assert answer["error"]["code"] in {-32602, -32020}


async def test_answers_that_are_none_change_nothing(client: TaskClient) -> None:
    """Ours: wrong forms, wrong types, deep and huge answers are refused, and the question stays (TEN-5)."""
    deep: Any = 1
    for _ in range(60):
        deep = [deep]
    task = await client.start("asks")
    await client.wait(task, "input_required")

    wrong: tuple[Any, ...] = (7, "yes", [], {}, {"action": "perhaps"}, {"roots": []}, deep, accept(name="x" * 70_000))
    for sent in wrong:
        answer = await client.update(task, first=sent)
        assert answer["error"]["code"] == -32602, sent
    many = {f"k{number}": 0 for number in range(9_000)}
    assert "result" in await client.update(task, **many)

    assert set((await client.get(task))["inputRequests"]) == {"first"}


async def test_an_answer_of_the_wrong_content_is_not_given_to_the_handler(client: TaskClient) -> None:
    """Ours: the content of a form is checked against its schema also in a task (CAL-2)."""
    task = await client.start("asks")
    await client.wait(task, "input_required")

    await client.update(task, first=accept(name=7))

    ended = await client.wait(task)
    assert ended["result"]["isError"] is True


async def test_a_flood_of_tasks_is_refused_and_others_continue(
    gateway: RunningGateway, client: TaskClient, upstream: RecordingUpstream
) -> None:
    """Ours: the open tasks of one subject are bounded; a refusal names the limit, others are not touched (TEN-3)."""
    other = replace(client, key=await gateway.create_key("acme", subject="eve"))
    refused: list[dict[str, Any]] = []

    async def flood() -> None:
        for _ in range(MAX_OPEN_EACH // 4 + 5):
            answer = await client.send("tools/call", {"name": "asks", "arguments": {}})
            if "error" in answer:
                refused.append(answer["error"])

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(flood)

    assert refused
    assert {error["code"] for error in refused} == {42900}
    assert "too many open tasks of this subject" in refused[0]["message"]
    assert (await other.wait(await other.start("errs")))["status"] == "completed"


async def test_a_declaration_of_another_shape_is_ignored(client: TaskClient) -> None:
    """Ours: extensions that are no object declare nothing, and break nothing (TEN-5)."""
    shapes: tuple[Any, ...] = ([], "io.modelcontextprotocol/tasks", 7, None, {"x": {}})
    for extensions in shapes:
        odd = replace(client, capabilities={"extensions": extensions})
        answer = await odd.send("tools/call", {"name": "errs", "arguments": {}})
        assert answer["error"]["code"] in {-32021, -32602}
