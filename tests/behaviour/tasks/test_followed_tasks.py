"""Tasks on the streams of `subscriptions/listen`: `notifications/tasks` with their full state."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx

from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.serving import http_client
from tests.support.tasks import CAPABILITIES, TASKS, TaskClient, accept

LISTEN = "subscriptions/listen"


@asynccontextmanager
async def following(client: TaskClient, tasks: Sequence[object]) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
    """The messages of a stream that names these tasks."""
    headers = {"authorization": f"Bearer {client.key}", "accept": ACCEPT}
    headers |= {"mcp-protocol-version": MODERN, "mcp-method": LISTEN}
    params = {"notifications": {"taskIds": tasks}, "_meta": {**META, CAPABILITIES: client.capabilities}}
    body = {"jsonrpc": "2.0", "id": "l", "method": LISTEN, "params": params}
    async with (
        http_client(base_url=client.gateway.url, timeout=30) as http,
        http.stream("POST", f"/t/{client.slug}/mcp", headers=headers, json=body) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        yield _messages(answer)


async def _messages(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            message: dict[str, Any] = json.loads(line[5:])
            yield message


async def until_status(messages: AsyncIterator[dict[str, Any]], status: str) -> dict[str, Any]:
    """The first notification of a task in this state."""
    with anyio.fail_after(10):
        async for message in messages:
            if message["params"].get("status") == status:
                return message
    raise AssertionError(f"no notification of {status}")


async def test_a_followed_task_is_reported_with_its_full_state(client: TaskClient) -> None:
    """MCP: `notifications/tasks` has questions and result, and nothing is sent before the acknowledgement (SAF-7)."""
    task = await client.start("asks")
    async with following(client, [task]) as messages:
        acknowledged = await anext(messages)
        asked = await until_status(messages, "input_required")
        await client.update(task, first=accept(name="Ada"))
        ended = await until_status(messages, "completed")

    assert acknowledged["params"]["notifications"] == {"taskIds": [task]}
    assert asked["method"] == "notifications/tasks"
    assert asked["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}
    assert set(asked["params"]["inputRequests"]) == {"first"}
    assert ended["params"]["result"]["content"][0]["text"] == "Ada"


async def test_only_tasks_of_the_client_are_followed(client: TaskClient) -> None:
    """Ours: unknown and foreign ids are left out of the acknowledgement (TEN-1)."""
    task = await client.start("errs")
    foreign = replace(client, key=await client.gateway.create_key("acme", subject="eve"))
    for each, wanted in ((foreign, [task]), (client, ["tsk_", "\x00"])):
        async with following(each, wanted) as messages:
            acknowledged = await anext(messages)
        assert acknowledged["params"]["notifications"] == {}


async def test_tasks_that_cannot_be_followed_are_refused(client: TaskClient) -> None:
    """MCP: a client without the extension would wait for ever; ids are strings in an array (SRV-1)."""
    task = await client.start("errs")
    plain = replace(client, capabilities={})
    with anyio.fail_after(60):  # a stream would not end
        missing = (await plain.send(LISTEN, {"notifications": {"taskIds": [task]}}, accept=ACCEPT))["error"]
    assert (missing["code"], missing["data"]["requiredCapabilities"]) == (-32021, {"extensions": {TASKS: {}}})
    not_ids: list[Any] = ["x", [7], [task, None], {"a": []}]
    for odd in not_ids:
        refused = await client.send(LISTEN, {"notifications": {"taskIds": odd}}, accept=ACCEPT)
        assert refused["error"]["code"] == -32602


async def test_a_huge_list_of_tasks_is_bounded(client: TaskClient) -> None:
    """Ours: a stream follows at most a hundred tasks, whatever it names (TEN-5)."""
    task = await client.start("errs")
    async with following(client, [f"tsk_{number:032}" for number in range(100)] + [task]) as messages:
        acknowledged = await anext(messages)

    assert acknowledged["params"]["notifications"] == {}
