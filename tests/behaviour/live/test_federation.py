"""Another MCP server behind a tenant's URL on two replicas: clients of both eras, server of both eras."""

import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import anyio
import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ElicitRequestParams,
    ElicitResult,
    PromptReference,
    TextContent,
)

from tests.integration.upstream.live.sdk_server import SdkServer, running_sdk_server
from tests.support.gateway import ACCEPT, RunningGateway, running_gateway
from tests.support.replicas import until
from tests.support.servers import TestServers

Mode = Literal["legacy", "2026-07-28"]
MODES: tuple[Mode, ...] = ("legacy", "2026-07-28")
SEEN_S = 30.0
"""A change is listed within seconds; a busy machine may take longer."""
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Federation:
    """Two replicas, and the server that one tenant has as a live source."""

    replicas: tuple[RunningGateway, RunningGateway]
    server: SdkServer
    slug: str
    key: str

    @asynccontextmanager
    async def client(self, mode: Mode, replica: int = 0, **options: Any) -> AsyncGenerator[Client]:
        """A client that sees the server's tools."""
        async with self.replicas[replica].client(self.slug, self.key, mode, **options) as client:
            await self.lists(client, "their_add")
            yield client

    async def lists(self, client: Client, *names: str, is_gone: bool = False) -> None:
        """Wait until the client lists these tools, or no longer lists them."""

        async def is_so() -> bool:
            return bool((await _names(client)) & {*names}) is not is_gone

        await until(is_so, seconds=SEEN_S)

    async def status(self) -> dict[str, Any]:
        """The live source as the admin API shows it."""
        answer = await self.replicas[0].admin.get(f"/tenants/{self.slug}/live-sources/sdk")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


@pytest.fixture(scope="module")
async def replicas(servers: TestServers) -> AsyncGenerator[tuple[RunningGateway, RunningGateway]]:
    """Two replicas over one database and one Redis."""
    with servers.database() as database:
        redis_url = servers.own_redis()
        async with (
            running_gateway(database.app_url, redis_url) as first,
            running_gateway(database.app_url, redis_url) as second,
        ):
            yield first, second


async def federate(replicas: tuple[RunningGateway, RunningGateway], server: SdkServer, **more: Any) -> Federation:
    """A new tenant with the server as a live source."""
    gateway, slug = replicas[0], f"federated-{next(_numbers)}"
    await gateway.create_tenant(slug)
    key = await gateway.create_key(slug)
    allow = {"allow": [f"127.0.0.1:{server.port}"]}
    (await gateway.admin.put(f"/tenants/{slug}/egress", json=allow)).raise_for_status()
    body = {"name": "sdk", "kind": "mcp", "settings": {"url": server.url}, "prefix": "their_", **more}
    (await gateway.admin.post(f"/tenants/{slug}/live-sources", json=body)).raise_for_status()
    return Federation(replicas, server, slug, key)


@pytest.fixture(scope="module", params=["newest", "older"])
async def federation(
    request: pytest.FixtureRequest, replicas: tuple[RunningGateway, RunningGateway]
) -> AsyncGenerator[Federation]:
    """The server speaks the newest revision, or the handshake revisions only."""
    async with running_sdk_server(is_older=request.param == "older") as server:
        found = await federate(replicas, server)
        for replica in (0, 1):
            async with found.client("2026-07-28", replica):
                pass  # a session declares what is listed when it opens
        yield found


@pytest.mark.parametrize(("mode", "replica"), [("legacy", 0), ("2026-07-28", 1)])
async def test_every_primitive_of_the_server_is_served_at_every_replica(
    federation: Federation, mode: Mode, replica: int
) -> None:
    """DYN-5: tools, resources, templates, prompts and completions, in both eras, wherever the client connects."""
    async with federation.client(mode, replica) as client:
        called = await client.call_tool("their_add", {"a": 2, "b": "40"})
        assert text(called) == "42"
        assert called.structured_content == {"result": 42}
        read = await client.read_resource("notes://one")
        assert getattr(read.contents[0], "text", None) == "first note"
        named = await client.read_resource("notes://by/%C3%B6")
        assert "ö" in str(getattr(named.contents[0], "text", None))
        prompt = await client.get_prompt("their_greet", {"name": "Ada"})
        assert "Ada" in str(prompt.messages[0].content)
        failed = await client.call_tool("their_raises", {})
        assert failed.is_error
    shown = await federation.status()
    assert shown["status"]["state"] == "attached"


@pytest.mark.parametrize("mode", MODES)
async def test_arguments_are_validated_before_they_are_sent(federation: Federation, mode: Mode) -> None:
    """DYN-5: the schema of the server binds callers of the gateway."""
    async with federation.client(mode) as client:
        sent = len(federation.server.headers)
        refused = await client.call_tool("their_add", {"a": "two", "b": 1})
        assert refused.is_error
        assert "/a" in text(refused)
        assert len(federation.server.headers) == sent


@pytest.mark.parametrize(("mode", "replica"), [("legacy", 1), ("2026-07-28", 0)])
async def test_progress_and_questions_pass_through(federation: Federation, mode: Mode, replica: int) -> None:
    """DYN-5: the server reports progress to, and asks, the client of the call."""
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        assert "colour" in params.message
        return ElicitResult(action="accept", content={"name": "red"})

    async with federation.client(mode, replica, elicitation_callback=answer) as client:
        counted = await client.call_tool("their_count", {}, progress_callback=note)
        assert text(counted) == "counted"
        assert seen[0] == (1, 2, "half")
        painted = await client.call_tool("their_paint", {})
        assert text(painted) == "painted red"


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_be_asked_gets_a_reason(federation: Federation, mode: Mode) -> None:
    """DYN-5: the server's question to a client without the capability is a clean error of the call."""
    async with federation.client(mode) as client:
        if mode == "legacy":
            assert (await client.call_tool("their_paint", {})).is_error
            return
        with pytest.raises(MCPError) as refused:
            await client.call_tool("their_paint", {})
    assert refused.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY
    assert refused.value.data["requiredCapabilities"] == {"elicitation": {}}


@pytest.mark.parametrize("mode", MODES)
async def test_completions_and_logging_are_declared(federation: Federation, mode: Mode) -> None:
    """Ours: clients may complete arguments at a server that completes none, and set the level of its log (DYN-5)."""
    async with federation.client(mode) as client:
        if mode == "legacy":  # the other era declares them in `server/discover`, which this client does not send
            assert client.server_capabilities.completions is not None
            assert client.server_capabilities.logging is not None
        found = await client.complete(
            PromptReference(type="ref/prompt", name="their_greet"), {"name": "name", "value": "A"}
        )
        assert found.completion.values == []


async def test_plain_calls_and_calls_through_the_sdk_are_answered_alike(federation: Federation) -> None:
    """Ours: a client that receives no messages is served in front of the SDK, with the same bytes (DYN-5)."""
    gateway, slug, key = federation.replicas[1], federation.slug, federation.key
    async with federation.client("2026-07-28", 1):
        for name, arguments in (("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("raises", {}), ("paint", {})):
            params = {"name": f"their_{name}", "arguments": arguments}
            plain = await gateway.rpc(slug, key, "tools/call", params)
            through_sdk = await gateway.rpc(slug, key, "tools/call", {**params, "_meta": {"mcp": 1}})
            assert plain.status_code == through_sdk.status_code
            assert _stable(plain.json()) == _stable(through_sdk.json()), name


async def test_calls_in_sessions_are_json_until_a_message_comes(federation: Federation) -> None:
    """Ours: in front of the SDK, with the same bytes; progress or a question makes the response a stream (DYN-5)."""
    gateway, slug, key = federation.replicas[1], federation.slug, federation.key
    headers = {"authorization": f"Bearer {key}", "accept": ACCEPT}

    async def post(method: str, params: dict[str, Any]) -> httpx.Response:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        return await gateway.http.post(f"/t/{slug}/mcp", json=body, headers=headers)

    async with federation.client("legacy", 1):
        client = {"name": "raw", "version": "1"}
        begun = await post("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        for name, arguments in (("add", {"a": 1, "b": 2}), ("add", {"a": "x"}), ("raises", {}), ("paint", {})):
            params = {"name": f"their_{name}", "arguments": arguments}
            plain = await post("tools/call", params)
            through_sdk = await post("tools/call", {**params, "_meta": {"mcp": 1}})
            assert plain.headers["content-type"].startswith("application/json")
            assert _stable(plain.json()) == _stable(through_sdk.json()), name
        counted = await post("tools/call", {"name": "their_count", "_meta": {"progressToken": "t"}})
    assert counted.headers["content-type"].startswith("text/event-stream")
    sent = [json.loads(line[5:]) for line in counted.text.splitlines() if line.startswith("data:") and line[5:].strip()]
    assert [one.get("method") for one in sent][-1] is None
    assert sent[0]["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
    assert sent[-1]["result"]["content"][0]["text"] == "counted"


def _stable(message: Any) -> Any:
    """The message without correlation ids."""
    if isinstance(message, dict):
        members = cast("dict[str, Any]", message)
        return {name: _stable(value) for name, value in members.items() if name != "correlation_id"}
    return [_stable(one) for one in cast("list[object]", message)] if isinstance(message, list) else message


async def test_another_tenant_sees_nothing(federation: Federation) -> None:
    """Attack: neither list, call nor resource of another tenant reaches the server (TEN-1, DYN-2)."""
    gateway = federation.replicas[0]
    slug = f"{federation.slug}-other"
    await gateway.create_tenant(slug)
    key = await gateway.create_key(slug)
    async with gateway.client(slug, key, "2026-07-28") as client:
        assert not (await client.list_tools()).tools
        with pytest.raises(MCPError):
            await client.call_tool("their_add", {"a": 1, "b": 1})
        with pytest.raises(MCPError):
            await client.read_resource("notes://one")
    answer = await gateway.admin.get(f"/tenants/{slug}/live-sources/sdk")
    assert answer.status_code == 404


async def test_policy_and_audit_apply_as_to_any_tool(federation: Federation) -> None:
    """DYN-5: a call is recorded, and a denied level is refused before anything is sent (SAF-2, SAF-4)."""
    gateway = federation.replicas[0]
    policy = f"/tenants/{federation.slug}/policy"
    async with federation.client("2026-07-28") as client:
        await client.call_tool("their_count", {})
        trail = (await gateway.admin.get(f"/tenants/{federation.slug}/audit", params={"limit": 50})).json()
        assert any("their_count" in str(entry) for entry in trail["items"])
        (await gateway.admin.patch(policy, json={"moderate": "deny"})).raise_for_status()
        try:
            refused = await client.call_tool("their_count", {})
            assert refused.is_error
            assert "policy.denied" in str(refused.meta)
        finally:
            (await gateway.admin.patch(policy, json={"moderate": "allow"})).raise_for_status()


async def test_calls_follow_the_origins_of_the_policy(federation: Federation) -> None:
    """Ours: an origin that the tenant's policy no longer allows is not called, at no replica (ISO-1)."""
    gateway, policy = federation.replicas[0], f"/tenants/{federation.slug}/policy"
    sent = len(federation.server.headers)
    async with federation.client("2026-07-28", 1) as client:
        refused = {"http_origins": ["https://elsewhere.example"]}
        (await gateway.admin.patch(policy, json=refused)).raise_for_status()
        try:
            with anyio.fail_after(SEEN_S):
                while not (found := await client.call_tool("their_add", {"a": 1, "b": 2})).is_error:
                    sent = len(federation.server.headers)  # until the other replica has received the change
                    await anyio.sleep(0.02)
            assert "policy does not allow" in text(found)
            assert not any(each.get("mcp-name") == "add" for each in federation.server.headers[sent:])
        finally:
            (await gateway.admin.patch(policy, json={"http_origins": None})).raise_for_status()


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
@pytest.mark.parametrize(("mode", "is_older"), [("legacy", True), ("2026-07-28", False)])
async def test_the_life_of_a_server_is_seen_by_its_clients(
    replicas: tuple[RunningGateway, RunningGateway], mode: Mode, is_older: bool
) -> None:
    """DYN-1: changes, updates, cancellation, the end and the return of the server reach open clients of any replica."""
    updated = anyio.Event()

    async def receive(message: Any) -> None:
        if getattr(message, "method", None) == "notifications/resources/updated":
            updated.set()

    async with running_sdk_server(is_older=is_older) as server:
        life = await federate(replicas, server, accepts_changes=True)
        async with life.client(mode, 1, message_handler=receive) as client:
            await _follow_and_touch(client, mode, updated)
            await _cancel(client, server)
            before = await _names(client)
            await client.call_tool("their_grow", {})

            async def has_grown() -> bool:
                return await _names(client) != before

            await until(has_grown, seconds=SEEN_S)
            server.end()
            await life.lists(client, "their_add", is_gone=True)
            shown = await life.status()
            assert shown["status"]["state"] == "failed"
            assert shown["status"]["fault"]


async def _follow_and_touch(client: Client, mode: Mode, updated: anyio.Event) -> None:
    """Subscribe to a resource, let the server change it, and wait for the update."""
    with anyio.fail_after(SEEN_S):
        if mode == "legacy":
            await client.subscribe_resource("notes://one")  # pyright: ignore[reportDeprecated]  # this era has it
            while not updated.is_set():
                await client.call_tool("their_touch", {})
                await anyio.sleep(0.1)
            return
        async with (
            client.listen(resource_subscriptions=["notes://one"]) as received,
            anyio.create_task_group() as group,
        ):

            async def touch() -> None:
                while True:
                    await client.call_tool("their_touch", {})
                    await anyio.sleep(0.1)

            group.start_soon(touch)
            async for _ in received:
                break
            group.cancel_scope.cancel()


async def _cancel(client: Client, server: SdkServer) -> None:
    """Cancel a call that runs at the server, and wait until it is cancelled there."""
    with anyio.fail_after(SEEN_S):
        async with anyio.create_task_group() as group:
            group.start_soon(_wait, client)
            await server.started.wait()
            group.cancel_scope.cancel()
        await server.cancelled.wait()


async def _wait(client: Client) -> None:
    await client.call_tool("their_wait", {})


async def test_query_tools_show_and_call_the_tools_of_a_large_server(federation: Federation) -> None:
    """DYN-5: exposed so, its tools are searched and called in place of being listed, under the same rules."""
    gateway, slug = federation.replicas[0], federation.slug
    place = f"/tenants/{slug}/live-sources/sdk"
    async with federation.client("2026-07-28") as client:
        try:
            (await gateway.admin.patch(place, json={"expose": "query"})).raise_for_status()
            await federation.lists(client, "their_add", is_gone=True)

            async def is_attached() -> bool:
                found = await client.call_tool("list_endpoints", {"source": "sdk"})
                return "TOOL their_add" in text(found)

            await until(is_attached, seconds=SEEN_S)
            assert not {name for name in await _names(client) if name.startswith("their_")}
            hits = (await client.call_tool("search_endpoints", {"query": "add"})).structured_content
            assert hits is not None
            assert hits["results"][0]["operation"] == "TOOL their_add"
            details = (await client.call_tool("get_endpoint_details", {"operation": "their_add"})).structured_content
            assert details is not None
            assert set(details["inputSchema"]["properties"]) == {"a", "b"}
            assert details["outputSchema"]["type"] == "object"

            call = {"operation": "TOOL their_add", "arguments": {"a": 2, "b": 40}}
            assert text(await client.call_tool("call_endpoint", call)) == "42"
            assert "/a" in text(await client.call_tool("call_endpoint", {**call, "arguments": {"a": "two", "b": 1}}))
            with pytest.raises(MCPError, match="not found"):
                await client.call_tool("their_add", {"a": 2, "b": 40})

            profile = {"name": "small", "exclude": [{"names": ["*_add"]}]}
            (await gateway.admin.post(f"/tenants/{slug}/profiles", json=profile)).raise_for_status()
            params = {"name": "call_endpoint", "arguments": call}
            hidden = await gateway.rpc(f"{slug}/small", federation.key, "tools/call", params)
            assert "Endpoint not found" in hidden.text, hidden.text

            rule = {"tool": "their_add", "decision": "deny", "reason": "not today"}
            (await gateway.admin.patch(f"/tenants/{slug}/policy", json={"rules": [rule]})).raise_for_status()

            async def is_denied() -> bool:
                return "not today" in text(await client.call_tool("call_endpoint", call))

            await until(is_denied, seconds=SEEN_S)
        finally:
            (await gateway.admin.patch(f"/tenants/{slug}/policy", json={"rules": []})).raise_for_status()
            (await gateway.admin.patch(place, json={"expose": "tools"})).raise_for_status()
        await federation.lists(client, "their_add")


async def _names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def text(result: Any) -> str:
    """The text of a tool's result."""
    return "".join(block.text for block in result.content if isinstance(block, TextContent))
