"""The SDK's own client in both eras, each of its HTTP requests at the next replica."""

from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from tests.behaviour.sessions.conftest import STEPS, URIS, Talk
from tests.support.primitives import add, static_tool
from tests.support.replicas import Mode, tool_names, until

ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")


async def _accept(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    del params
    return types.ElicitResult(action="accept", content={"confirm": True})


async def _subscribe(client: Client) -> None:
    with pytest.warns(MCPDeprecationWarning):
        await client.subscribe_resource(URIS[0])  # pyright: ignore[reportDeprecated]  # this era has it


def _text(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ERAS)
async def test_calls_reach_both_replicas(talk: Talk, mode: Mode) -> None:
    """Ours: no replica is a client's own (SRV-1)."""
    async with talk.replicas.client(talk.slug, talk.key, mode) as client:
        reported = {_text(await client.call_tool("echo", {"name": str(number)})) for number in range(6)}

    assert reported == {f"hello {number}" for number in range(6)}
    assert {name for name, method in talk.replicas.turns if method == "POST"} == {"a", "b"}


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_arrives_in_order(talk: Talk, mode: Mode) -> None:
    """MCP: progress reaches a client that requests it, each once and in order (SRV-1)."""
    notified: list[float] = []

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        del total, message
        notified.append(progress)

    async with talk.replicas.client(talk.slug, talk.key, mode) as client:
        answer = await client.call_tool("count", {}, progress_callback=receive)

    assert notified == [float(number) for number in range(1, STEPS + 1)]
    assert _text(answer) == "done"


@pytest.mark.parametrize("mode", ERAS)
async def test_questions_are_answered_through_another_replica(talk: Talk, mode: Mode) -> None:
    """MCP: one `ask`, two eras: a request of the server, or a result that asks (SRV-1)."""
    async with talk.replicas.client(talk.slug, talk.key, mode, elicitation_callback=_accept) as client:
        for _ in range(4):
            talk.replicas.turns.clear()
            assert _text(await client.call_tool("danger", {})) == "accept true"
            assert {name for name, method in talk.replicas.turns if method == "POST"} == {"a", "b"}


@pytest.mark.parametrize("mode", ERAS)
async def test_several_rounds_do_everything_once(talk: Talk, mode: Mode) -> None:
    """Ours: steps before a question are not repeated after its answer (CAL-4)."""
    async with talk.replicas.client(talk.slug, talk.key, mode, elicitation_callback=_accept) as client:
        answer = await client.call_tool("twice", {})

    assert _text(answer) == "accept accept"
    assert len(talk.upstream.seen) == 1


async def test_a_modern_client_without_the_capability_gets_its_name(talk: Talk) -> None:
    """MCP: -32021 names the capability that the request needs (SRV-1)."""
    async with talk.replicas.client(talk.slug, talk.key, "2026-07-28") as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("danger", {})

    assert caught.value.error.code == -32021
    assert caught.value.error.data["requiredCapabilities"] == {"elicitation": {}}


async def test_a_handshake_client_receives_updates_and_changes(bare_talk: Talk) -> None:
    """MCP: both on the GET stream, which the client opens by itself (RES-4, CAP-2)."""
    inbox: list[Any] = []

    async def receive(message: Any) -> None:
        inbox.append(message)

    def kinds() -> list[str]:
        return [each.method for each in inbox if hasattr(each, "method")]

    async with bare_talk.replicas.client(bare_talk.slug, bare_talk.key, "legacy", message_handler=receive) as client:
        await _subscribe(client)

        async def is_listening() -> bool:
            return ("a", "GET") in bare_talk.replicas.turns or ("b", "GET") in bare_talk.replicas.turns

        await until(is_listening)
        for replica in bare_talk.replicas.all:
            await bare_talk.update(URIS[0], replica.gateway)
        await add(bare_talk.gateway, bare_talk.slug, "tools", static_tool("brand_new"))

        async def is_notified() -> bool:
            return (
                kinds().count("notifications/resources/updated") == 2 and "notifications/tools/list_changed" in kinds()
            )

        await until(is_notified)
        assert "brand_new" in await tool_names(client)


@pytest.mark.parametrize("number", [0, 1])
async def test_a_modern_client_listens_at_one_replica_to_the_other(bare_talk: Talk, number: int) -> None:
    """MCP: `subscriptions/listen`: what was asked for, acknowledged first (RES-4)."""
    here, there = bare_talk.replicas.all[number], bare_talk.replicas.all[1 - number]
    async with (
        bare_talk.replicas.client(bare_talk.slug, bare_talk.key, "2026-07-28", to=here) as client,
        client.listen(resource_subscriptions=[URIS[0]], tools_list_changed=True) as events,
    ):
        with anyio.fail_after(20):
            await bare_talk.update(URIS[1], there.gateway)
            await bare_talk.update(URIS[0], there.gateway)
            updated = await anext(events)
            await add(there.gateway, bare_talk.slug, "tools", static_tool("brand_new"))
            changed = await anext(events)

    assert (type(updated).__name__, getattr(updated, "uri", None)) == ("ResourceUpdated", URIS[0])
    assert type(changed).__name__ == "ToolsListChanged"


async def test_a_client_of_the_old_transport_is_served_by_both_replicas(talk: Talk) -> None:
    """MCP (2024-11-05): the stream on one replica, the messages at another, questions included (SRV-1)."""
    async with talk.old_client(
        stream=talk.replicas.a, messages=talk.replicas.b, elicitation_callback=_accept
    ) as client:
        assert "echo" in await tool_names(client)
        assert _text(await client.call_tool("echo", {"name": "you"})) == "hello you"
        assert _text(await client.call_tool("danger", {})) == "accept true"
        notified: list[float] = []

        async def receive(progress: float, total: float | None, message: str | None) -> None:
            del total, message
            notified.append(progress)

        assert _text(await client.call_tool("count", {}, progress_callback=receive)) == "done"
        assert notified == [float(number) for number in range(1, STEPS + 1)]


async def test_the_sdks_client_survives_the_loss_of_the_replica_that_streams_to_it(bare_talk: Talk) -> None:
    """Ours: the client reconnects by itself and goes on hearing (SRV-3)."""
    inbox: list[Any] = []

    async def receive(message: Any) -> None:
        inbox.append(message)

    a, b = bare_talk.replicas.a, bare_talk.replicas.b
    async with bare_talk.replicas.client(bare_talk.slug, bare_talk.key, "legacy", message_handler=receive) as client:
        await _subscribe(client)

        async def is_listening() -> bool:
            return any(method == "GET" for _, method in bare_talk.replicas.turns)

        await until(is_listening)
        streaming = next(name for name, method in bare_talk.replicas.turns if method == "GET")
        dead, alive = (a, b) if streaming == "a" else (b, a)
        bare_talk.replicas.turns.clear()
        dead.kill()
        await until(is_listening, seconds=15)
        await bare_talk.update(URIS[0], alive.gateway)

        async def is_notified() -> bool:
            return any(getattr(each, "method", "") == "notifications/resources/updated" for each in inbox)

        await until(is_notified, seconds=15)
        assert _text(await client.call_tool("echo", {"name": "you"})) == "hello you"
