"""Sessions of callers at another MCP server, over two replicas: their state, questions and resources outlive either."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, ResourceLink

from tests.behaviour.replicas.conftest import Acme
from tests.integration.upstream.live.sdk_server import running_sdk_server
from tests.support.replicas import tool_names, until


@dataclass(frozen=True)
class Federated:
    """A tenant with a server that has sessions only, or both eras."""

    acme: Acme
    keys: tuple[str, str]

    @asynccontextmanager
    async def client(self, key: int = 0, mode: Any = "legacy", **more: Any) -> AsyncGenerator[Client]:
        """A client whose requests go to the replicas in turn."""
        async with self.acme.replicas.client(self.acme.slug, self.keys[key], mode, **more) as client:
            yield client


@asynccontextmanager
async def federated(acme: Acme, *, is_older: bool = True) -> AsyncGenerator[Federated]:
    """Attach the server to the tenant while the block runs."""
    gateway, slug = acme.replicas.a.gateway, acme.slug
    async with running_sdk_server(is_older=is_older) as server:
        allow = {"allow": [f"127.0.0.1:{server.port}"]}
        (await gateway.admin.put(f"/tenants/{slug}/egress", json=allow)).raise_for_status()
        body = {"name": "sdk", "kind": "mcp", "settings": {"url": server.url}}
        (await gateway.admin.post(f"/tenants/{slug}/live-sources", json=body)).raise_for_status()
        found = Federated(acme, (acme.key, await gateway.create_key(slug)))
        for replica in acme.replicas.all:
            async with acme.replicas.client(slug, acme.key, to=replica) as client:

                async def is_listed(client: Client = client) -> bool:
                    return "count_calls" in await tool_names(client)

                await until(is_listed, seconds=30)
        yield found


def text(result: Any) -> str:
    """The text of a tool's result."""
    assert not result.is_error, result
    return "".join(block.text for block in result.content)


async def accept(_: Any, params: ElicitRequestParams) -> ElicitResult:
    """Accept whatever is asked."""
    assert "colour" in params.message
    return ElicitResult(action="accept", content={"name": "red"})


async def count(client: Client) -> str:
    """Count a call of the client's session."""
    return text(await client.call_tool("count_calls", {}))


@pytest.mark.early
async def test_callers_keep_their_sessions_when_a_replica_is_killed(acme: Acme) -> None:
    """DYN-5: requests of each client are in its one session at the server, whatever replica sends them.

    The order of calls is that of IBM/mcp-context-forge#4205.
    """
    async with federated(acme) as world, world.client(0) as alice, world.client(1) as bob:
        assert [await count(who) for who in (alice, alice, bob)] == ["1", "2", "1"]
        acme.replicas.a.kill()
        assert [await count(who) for who in (alice, bob, alice)] == ["3", "2", "4"]
        await acme.replicas.a.start()
        async with world.client(0, "2026-07-28") as modern, world.client(0, "2026-07-28") as other:
            assert [await count(who) for who in (modern, other, modern, alice)] == ["1", "2", "3", "5"]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_question_outside_the_call_reaches_the_client(acme: Acme, mode: str) -> None:
    """DYN-5: on the session's GET stream, which one of the replicas has; without a client to ask there is no wait."""
    async with federated(acme) as world, world.client(0, mode, elicitation_callback=accept) as client:
        for _ in range(3):
            assert text(await client.call_tool("ask_aside", {})) == "user: accept"
        async with world.client(1, mode) as silent:
            assert (await silent.call_tool("ask_aside", {})).is_error


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_server_that_asks_only_in_sessions_is_called_in_sessions(acme: Acme, mode: str) -> None:
    """DYN-5: a server of both eras that refuses to ask on connections of 2026-07-28 asks all the same."""
    async with federated(acme, is_older=False) as world:
        async with world.client(0, mode, elicitation_callback=accept) as client:
            for _ in range(3):
                assert text(await client.call_tool("ask_inside", {})) == "user: accept"
            assert [await count(client) for _ in range(2)] == ["1", "2"]
        async with world.client(0, mode) as silent:
            assert await count(silent)
            assert (await silent.call_tool("ask_inside", {})).is_error


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_linked_resource_is_read_in_the_session_that_returned_it(acme: Acme, mode: str) -> None:
    """DYN-5: a link of a tool names no listed resource; its caller reads it at every replica, and no other caller."""
    async with federated(acme) as world, world.client(0, mode) as client:
        kept = await client.call_tool("keep", {"text": "mine"})
        [link] = kept.content
        assert isinstance(link, ResourceLink)
        assert link.uri not in {one.uri for one in (await client.list_resources()).resources}
        for _ in acme.replicas.all:
            read = await client.read_resource(link.uri)
            assert getattr(read.contents[0], "text", "") == "mine"
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("kept://another")
        other = "2026-07-28" if mode == "legacy" else "legacy"
        for key, how in ((1, mode), (0, other)):
            async with world.client(key, how) as stranger:
                with pytest.raises(MCPError, match="not found"):
                    await stranger.read_resource(link.uri)
        profile = {"name": "narrow", "exclude": [{"sources": ["sdk"]}]}
        (await acme.replicas.a.gateway.admin.post(f"/tenants/{acme.slug}/profiles", json=profile)).raise_for_status()
        async with acme.replicas.client(f"{acme.slug}/narrow", acme.key, "legacy") as elsewhere:
            with pytest.raises(MCPError):
                await elsewhere.read_resource(link.uri)
