"""Streams of 2026-07-28 that notify a client of changed tools."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.documents import many
from tests.support.gateway import ACCEPT, META, MODERN, running_gateway
from tests.support.replicas import until
from tests.support.serving import http_client

LISTEN = "subscriptions/listen"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def _request(acme: Acme, wanted: dict[str, Any], request_id: str | int) -> dict[str, Any]:
    headers = {
        "authorization": f"Bearer {acme.key}",
        "accept": ACCEPT,
        "mcp-protocol-version": MODERN,
        "mcp-method": LISTEN,
    }
    params = {"notifications": wanted, "_meta": META}
    body = {"jsonrpc": "2.0", "id": request_id, "method": LISTEN, "params": params}
    return {"headers": headers, "json": body}


@asynccontextmanager
async def _listening(
    acme: Acme, wanted: dict[str, Any] | None = None, request_id: str | int = "l-1", url: str | None = None
) -> AsyncGenerator[AsyncIterator[dict[str, Any]]]:
    """The messages of one stream, acknowledgement included."""
    wanted = {"toolsListChanged": True} if wanted is None else wanted
    async with (
        http_client(base_url=url or acme.gateway.url, timeout=30) as http,
        http.stream("POST", "/t/acme/mcp", **_request(acme, wanted, request_id)) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield _messages(answer)


async def _messages(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.aiter_lines():
        if line.startswith("data:"):
            message: dict[str, Any] = json.loads(line[5:])
            yield message


async def _next(messages: AsyncIterator[dict[str, Any]]) -> dict[str, Any]:
    with anyio.fail_after(10):
        return await anext(messages)


async def test_a_change_of_the_tools_is_notified_once(acme: Acme) -> None:
    """MCP: acknowledgement first, then what was asked for, with its id; a burst is one notice (CAP-2, SRV-1)."""
    async with _listening(acme, request_id=7) as messages:
        acknowledged = await _next(messages)
        await acme.gateway.import_document("acme", many(acme.upstream.url, 3), name="more")
        await acme.gateway.import_document("acme", many(acme.upstream.url, 3), name="again", prefix="a_")
        changed = await _next(messages)
        names = (await acme.gateway.rpc("acme", acme.key, "tools/list")).json()["result"]["tools"]

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert changed["method"] == "notifications/tools/list_changed"
    assert [message["params"]["_meta"][SUBSCRIPTION] for message in (acknowledged, changed)] == [7, 7]
    assert len(names) == 10


async def test_only_deliverable_notifications_are_acknowledged(acme: Acme) -> None:
    """MCP: the acknowledgement names the subset that will be delivered (CAP-2)."""
    wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourceSubscriptions": ["note://1"]}
    async with _listening(acme, wanted) as messages:
        acknowledged = await _next(messages)

    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        ({"toolsListChanged": "yes"}, "notifications.toolsListChanged must be a boolean"),
        ({"promptsListChanged": 1}, "notifications.promptsListChanged must be a boolean"),
        ({"resourceSubscriptions": [f"note://{number}" for number in range(1001)]}, "limit 1000"),
    ],
)
async def test_a_filter_that_cannot_be_served_as_it_is_is_refused(
    acme: Acme, wanted: dict[str, Any], fault: str
) -> None:
    """Ours: no text is read as a boolean, and no resource is left out without a word (CAP-2)."""
    answer = await acme.gateway.rpc("acme", acme.key, LISTEN, {"notifications": wanted})

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["data"]["code"]) == (400, -32602, "input.invalid")
    assert fault in error["message"]


async def test_changes_of_another_tenant_are_not_notified(acme: Acme) -> None:
    """Ours: a stream receives events of its own tenant only (TEN-5)."""
    await acme.gateway.create_tenant("globex")
    async with _listening(acme) as messages:
        await _next(messages)
        await acme.gateway.import_document("globex", many(acme.upstream.url, 2), name="theirs")
        await acme.gateway.import_document("acme", many(acme.upstream.url, 1), name="mine")
        await _next(messages)
        with anyio.move_on_after(1) as waited:
            await anext(messages)

    assert waited.cancelled_caught


async def test_a_change_outside_the_lists_is_not_notified(acme: Acme) -> None:
    """Ours: a new policy moves the catalog and no tool (CAP-2)."""
    async with _listening(acme) as messages:
        await _next(messages)
        (await acme.gateway.admin.patch("/tenants/acme/policy", json={"dangerous": "deny"})).raise_for_status()
        await acme.gateway.import_document("acme", many(acme.upstream.url, 1), name="more")
        await _next(messages)
        with anyio.move_on_after(1) as waited:
            await anext(messages)

    assert waited.cancelled_caught


async def test_a_change_through_another_replica_is_notified(acme: Acme, database_url: str, redis_url: str) -> None:
    """Ours: it does not matter which replica holds the stream and which makes the change (CAP-2, SRV-1)."""
    async with running_gateway(database_url, redis_url) as other, _listening(acme, url=other.url) as messages:
        await _next(messages)
        await acme.gateway.import_document("acme", many(acme.upstream.url, 1), name="more")
        changed = await _next(messages)

    assert changed["method"] == "notifications/tools/list_changed"


async def test_the_sdk_client_is_notified(acme: Acme) -> None:
    """MCP: the SDK's own client receives a change (CAP-2, SRV-1)."""
    async with acme.gateway.client("acme", acme.key) as client:
        with anyio.fail_after(10):
            async with client.listen(tools_list_changed=True) as subscription:
                await acme.gateway.import_document("acme", many(acme.upstream.url, 1), name="more")
                async for event in subscription:
                    assert type(event).__name__ == "ToolsListChanged"
                    break


async def test_streams_are_limited_per_tenant(acme: Acme) -> None:
    """Ours: a tenant has at most as many streams as its policy permits, with a hint when to retry (TEN-3)."""
    (await acme.gateway.admin.patch("/tenants/acme/policy", json={"limits": {"streams": 1}})).raise_for_status()
    async with _listening(acme) as messages:
        await _next(messages)
        request = _request(acme, {"toolsListChanged": True}, "l-2")
        with anyio.fail_after(10):
            refused = await acme.gateway.http.post("/t/acme/mcp", **request)

    assert refused.json()["error"]["code"] == 42900

    request = _request(acme, {"toolsListChanged": True}, "l-3")

    async def is_let_in() -> bool:
        """That the first one left is known a moment after it did."""
        async with acme.gateway.http.stream("POST", "/t/acme/mcp", **request) as answer:
            return answer.headers["content-type"].startswith("text/event-stream")

    await until(is_let_in, seconds=20)


async def test_a_revoked_key_has_no_streams(acme: Acme, database_url: str, redis_url: str) -> None:
    """Ours: a revocation ends the streams of that key on every replica, and no others (TEN-2, CON-1)."""
    kept = acme.key
    revoked = (await acme.gateway.admin.post("/tenants/acme/keys", json={"name": "r", "scopes": ["mcp"]})).json()
    theirs = replace(acme, key=revoked["key"])
    async with (
        running_gateway(database_url, redis_url) as other,
        _listening(theirs, url=other.url) as messages,
        _listening(acme, url=other.url) as others,
    ):
        await _next(messages)
        await _next(others)
        (await acme.gateway.admin.post(f"/tenants/acme/keys/{revoked['id']}/revoke")).raise_for_status()
        ended = await _next(messages)
        await acme.gateway.import_document("acme", many(acme.upstream.url, 1), name="more")
        changed = await _next(others)

    assert ended["result"]["resultType"] == "complete"
    assert changed["method"] == "notifications/tools/list_changed"
    assert (await acme.gateway.rpc("acme", kept, "tools/list")).status_code == 200
    assert (await acme.gateway.rpc("acme", revoked["key"], "tools/list")).status_code == 401


async def test_a_tenant_that_is_removed_has_no_streams(acme: Acme) -> None:
    """MCP: the server ends a stream with its final result (CON-1)."""
    async with _listening(acme) as messages:
        await _next(messages)
        (await acme.gateway.admin.delete("/tenants/acme")).raise_for_status()
        ended = await _next(messages)

    assert ended["id"] == "l-1"
    assert ended["result"]["resultType"] == "complete"


async def test_a_drain_ends_streams_with_their_final_result(acme: Acme, database_url: str, redis_url: str) -> None:
    """MCP: listeners are notified of a shutdown, and nothing delays the end of the process (SRV-3)."""
    async with running_gateway(database_url, redis_url) as other, _listening(acme, url=other.url) as messages:
        await _next(messages)
        other.readiness.drain()
        ended = await _next(messages)

    assert ended["result"]["_meta"][SUBSCRIPTION] == "l-1"
