"""Attachments to the SDK's own server, in both protocol eras."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest

from gateway.domain.primitives import Family
from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import CapabilityMissing, NotFound
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveAttachment
from tests.deploy.sockets import free_port
from tests.integration.upstream.live.parts import Client, Listener, attached_by, mcp_connector, source
from tests.integration.upstream.live.sdk_server import SdkServer, running_sdk_server

ERAS = ["2026-07-28", "handshake", "without sessions"]


@dataclass(slots=True)
class World:
    """One attachment to one server."""

    server: SdkServer
    attachment: LiveAttachment
    listener: Listener


@asynccontextmanager
async def attached(server: SdkServer, **settings: object) -> AsyncGenerator[World]:
    """Attach to the server while the block runs."""
    listener = Listener()
    async with UpstreamClient(egress_allow=[f"127.0.0.1:{server.port}"]) as upstream:
        connector = mcp_connector(upstream)
        async with attached_by(connector, source({"url": server.url, **settings}), listener) as attachment:
            yield World(server, attachment, listener)


@pytest.fixture(params=ERAS)
async def world(request: pytest.FixtureRequest) -> AsyncGenerator[World]:
    """An attachment in each era."""
    options = {"is_older": request.param != ERAS[0]}
    if request.param == ERAS[2]:
        options["stateless_http"] = True
    with anyio.fail_after(60):
        async with running_sdk_server(**options) as server, attached(server) as world:
            yield world


@pytest.fixture(params=ERAS[:2])
async def stateful(request: pytest.FixtureRequest) -> AsyncGenerator[World]:
    """An attachment in the eras in which the server can ask."""
    with anyio.fail_after(60):
        async with running_sdk_server(is_older=request.param != ERAS[0]) as server, attached(server) as world:
            yield world


async def test_everything_that_the_server_lists_is_discovered(world: World) -> None:
    """Ours: tools, resources, templates and prompts come with their definitions (DYN-5)."""
    found = await world.attachment.discover()

    names = {(each.family, each.name) for each in found.primitives}
    assert {(Family.TOOL, "add"), (Family.RESOURCE, "notes://one"), (Family.PROMPT, "greet")} <= names
    assert (Family.TEMPLATE, "notes://by/{name}") in names
    assert found.title == "sdk 3"
    add = next(each for each in found.primitives if each.name == "add")
    assert add.definition["inputSchema"]["required"] == ["a", "b"]  # type: ignore[index]
    assert add.definition["annotations"]["readOnlyHint"] is True  # type: ignore[index]


async def test_results_have_the_form_of_the_handshake_era(world: World) -> None:
    """Ours: a result is the server's, without members that only one revision has."""
    client = Client()
    result = await world.attachment.request("tools/call", {"name": "add", "arguments": {"a": 2, "b": 3}}, client)
    read = await world.attachment.request("resources/read", {"uri": "notes://one"}, client)
    got = await world.attachment.request("prompts/get", {"name": "greet", "arguments": {"name": "Ö"}}, client)

    assert result["content"] == [{"type": "text", "text": "5"}]
    assert result["structuredContent"] == {"result": 5}
    assert read["contents"][0]["text"] == "first note"
    assert got["messages"][0]["content"]["text"] == "Greet Ö."
    assert not {"resultType", "ttlMs", "cacheScope"} & {*result, *read, *got}


async def test_progress_reaches_the_client(world: World) -> None:
    """Ours: notifications of one request go to its client, with the token rewritten."""
    client = Client()
    result = await world.attachment.request("tools/call", {"name": "count", "arguments": {}}, client)

    assert result["content"][0]["text"] == "counted"
    assert client.notified == [("progress", 1, 2, "half"), ("progress", 2, 2, None)]


async def test_a_question_is_answered_by_the_client_of_its_request(stateful: World) -> None:
    """Ours: two calls at once, each with another answer."""
    clients = [
        Client({"elicitation/create": {"action": "accept", "content": {"name": name}}}) for name in ("red", "blue")
    ]
    results = await asyncio.gather(
        *(stateful.attachment.request("tools/call", {"name": "paint", "arguments": {}}, client) for client in clients)
    )

    assert [result["content"][0]["text"] for result in results] == ["painted red", "painted blue"]
    assert all(len(client.asked) == 1 for client in clients)
    assert clients[0].asked[0][1]["message"] == "Which colour?"


async def test_a_client_without_the_capability_is_not_asked(stateful: World) -> None:
    """Ours: the gateway declares to the server what the client of the request can do."""
    client = Client(abilities=frozenset())
    with pytest.raises(CapabilityMissing) as refused:
        await stateful.attachment.request("tools/call", {"name": "paint", "arguments": {}}, client)

    assert refused.value.capability == "elicitation"
    assert not client.asked


async def test_cancellation_reaches_the_server(stateful: World) -> None:
    """Ours: a call that the client gives up ends at the server, and the next call works."""
    call = asyncio.ensure_future(stateful.attachment.request("tools/call", {"name": "wait", "arguments": {}}, Client()))
    await stateful.server.started.wait()
    call.cancel()
    await stateful.server.cancelled.wait()
    with pytest.raises(asyncio.CancelledError):
        await call

    result = await stateful.attachment.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}}, Client())
    assert result["structuredContent"] == {"result": 2}


async def test_errors_of_tools_are_results(world: World) -> None:
    """The MCP specification: a failed tool answers with `isError`."""
    result = await world.attachment.request("tools/call", {"name": "raises", "arguments": {}}, Client())

    assert result["isError"] is True


async def test_a_resource_that_the_server_lacks_is_not_found(world: World) -> None:
    """Ours: an unknown resource is not found; other refusals have the server's code and words."""
    with pytest.raises(NotFound, match="its message: 'Unknown resource"):
        await world.attachment.request("resources/read", {"uri": "notes://none/at/all"}, Client())
    with pytest.raises(LiveSourceFailed, match=r"the server refused the request with error -?\d+; its message: '"):
        await world.attachment.request("completion/complete", {"ref": {}, "argument": {}}, Client())


async def test_a_changed_list_is_reported(stateful: World) -> None:
    """Ours: `list_changed` of the server reaches the listener (DYN-5)."""
    await stateful.attachment.discover()
    while not stateful.listener.has_changed.is_set():  # the stream opens in the background
        await stateful.attachment.request("tools/call", {"name": "grow", "arguments": {}}, Client())
        with anyio.move_on_after(0.1):
            await stateful.listener.has_changed.wait()

    names = {each.name for each in (await stateful.attachment.discover()).primitives}
    assert any(name.startswith("grown_") for name in names)


async def test_a_server_that_comes_back_is_attached_at_once() -> None:
    """Ours: failed attempts open no circuit, which would keep the returned server away for 30 s (DYN-1)."""
    port = free_port()
    declared = source({"url": f"http://127.0.0.1:{port}/mcp"})
    with anyio.fail_after(60):
        async with UpstreamClient(egress_allow=[f"127.0.0.1:{port}"]) as upstream:
            connector = mcp_connector(upstream)
            for _ in range(BulkheadLimits().failures + 1):
                with pytest.raises(LiveSourceFailed):
                    async with attached_by(connector, declared):
                        pass
            async with running_sdk_server(port=port), attached_by(connector, declared) as attachment:
                assert (await attachment.discover()).primitives
