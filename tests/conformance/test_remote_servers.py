"""Servers of others behind a live source: the official everything server over each transport, and FastMCP."""

import asyncio
import fcntl
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from benchmarks.peers import install_fastmcp
from benchmarks.processes import running
from gateway.domain.live_sources import LiveKind
from gateway.domain.primitives import Family
from gateway.errors import NotFound
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.command.connector import CommandConnector
from gateway.upstream.live.interfaces import LiveAttachment
from tests.conformance.node import clean_environment, find_node, find_packages
from tests.deploy.sockets import free_port
from tests.integration.upstream.live.parts import Client, Listener, attached_by, mcp_connector, source
from tests.support.serving import http_client

EVERYTHING = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
ANSWERS: dict[str, dict[str, Any]] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ann", "check": True}},
    "sampling/createMessage": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "sampled"}},
    "roots/list": {"roots": [{"uri": "file:///x", "name": "a root"}]},
}
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def program() -> list[str]:
    """The command of the everything server."""
    return [str(find_node() / "node"), str(find_packages("everything") / EVERYTHING)]


@pytest.fixture(scope="module")
def fastmcp() -> Iterator[str]:
    """The URL of a running FastMCP server; it is installed into an environment of its own."""
    with (Path(sys.prefix) / "fastmcp.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        installed = install_fastmcp(Path(sys.prefix) / "fastmcp")
    assert installed is not None, "pip cannot install FastMCP; its reason is above"
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    with running(["-P", str(HERE / "fastmcp_remote.py"), str(port)], url, python=str(installed.python)):
        yield url


@asynccontextmanager
async def serving(program: list[str], transport: str) -> AsyncGenerator[int]:
    """Serve the everything server over HTTP while the block runs; yield its port."""
    port = free_port()
    child = subprocess.Popen(  # noqa: ASYNC220
        [*program, transport],
        env=clean_environment() | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with http_client() as http:
            with anyio.fail_after(30):
                while True:
                    try:
                        await http.get(f"http://127.0.0.1:{port}/")
                        break
                    except httpx.TransportError:
                        await asyncio.sleep(0.05)  # no event reports that it listens
        yield port
    finally:
        child.kill()
        child.wait()


@asynccontextmanager
async def attached(url: str, **settings: object) -> AsyncGenerator[LiveAttachment]:
    """Attach to a URL while the block runs."""
    authority = httpx.URL(url).netloc.decode()
    async with UpstreamClient(egress_allow=[authority]) as upstream:
        connector = mcp_connector(upstream)
        async with attached_by(connector, source({"url": url, **settings})) as attachment:
            yield attachment


async def call(attachment: LiveAttachment, client: Client, name: str, **arguments: object) -> str:
    """Call a tool; return the text of its result."""
    result = await attachment.request("tools/call", {"name": name, "arguments": arguments}, client)
    return "\n".join(block.get("text", "") for block in result["content"])


async def walk(attachment: LiveAttachment) -> None:
    """Use everything that the everything server has; it asks for roots outside the response of the call."""
    found = await attachment.discover()
    assert (found.title, found.can_subscribe) == ("Everything Reference Server 2.0.0", True)
    assert not found.notices
    families = [each.family for each in found.primitives]
    assert [families.count(family) for family in Family] == [17, 7, 2, 4]

    client = Client(ANSWERS)
    assert await call(attachment, client, "echo", message="hé") == "Echo: hé"
    assert "completed" in await call(attachment, client, "trigger-long-running-operation", duration=0.1, steps=2)
    assert [notified for notified in client.notified if notified[0] == "progress"] == [  # type: ignore[index]
        ("progress", 1, 2, None),
        ("progress", 2, 2, None),
    ]
    assert "Ann" in await call(attachment, client, "trigger-elicitation-request")
    assert "sampled" in await call(attachment, client, "trigger-sampling-request", prompt="p", maxTokens=5)
    assert "a root" in await call(attachment, client, "get-roots-list")
    assert {method for method, _ in client.asked} == ANSWERS.keys()

    got = await attachment.request("prompts/get", {"name": "args-prompt", "arguments": {"city": "Bonn"}}, client)
    assert "Bonn" in got["messages"][0]["content"]["text"]
    read = await attachment.request("resources/read", {"uri": "demo://resource/dynamic/text/1"}, client)
    assert read["contents"][0]["text"].startswith("Resource 1")
    reference = {
        "ref": {"type": "ref/prompt", "name": "completable-prompt"},
        "argument": {"name": "department", "value": "E"},
    }
    completed = await attachment.request("completion/complete", reference, client)
    assert completed["completion"]["values"] == ["Engineering"]
    with pytest.raises(NotFound):
        await attachment.request("resources/read", {"uri": "demo://nothing"}, client)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert await attachment.request(method, {"uri": "demo://resource/dynamic/text/1"}, client) == {}


async def test_the_everything_server_over_standard_streams(program: list[str]) -> None:
    """Ours: a program of the operator, with updates of a followed resource (DYN-5)."""
    listener = Listener()
    declared = source({"argv": [*program, "stdio"]}, kind=LiveKind.COMMAND)
    with anyio.fail_after(60):
        async with attached_by(CommandConnector, declared, listener) as attachment:
            await walk(attachment)
            uri = "demo://resource/dynamic/text/2"
            await attachment.request("resources/subscribe", {"uri": uri}, Client())
            await call(attachment, Client(), "toggle-subscriber-updates")
            await listener.has_updated.wait()
    assert listener.updates == [uri]


async def test_the_everything_server_over_streamable_http(program: list[str]) -> None:
    """Ours: found without a stated transport (DYN-5)."""
    with anyio.fail_after(60):
        async with serving(program, "streamableHttp") as port, attached(f"http://127.0.0.1:{port}/mcp") as attachment:
            await walk(attachment)


@pytest.mark.parametrize("transport", ["auto", "sse"])
async def test_the_everything_server_over_http_sse(program: list[str], transport: str) -> None:
    """MCP 2025-11-25, backwards compatibility: a refused POST leads to the transport of 2024-11-05 (DYN-5)."""
    with anyio.fail_after(60):
        async with (
            serving(program, "sse") as port,
            attached(f"http://127.0.0.1:{port}/sse", transport=transport) as attachment,
        ):
            await walk(attachment)


async def test_fastmcp(fastmcp: str) -> None:
    """Ours: tools, progress, errors, resources, templates and prompts of FastMCP 4.1 (DYN-5)."""
    client = Client()
    with anyio.fail_after(60):
        async with attached(fastmcp) as attachment:
            found = await attachment.discover()
            assert {each.name for each in found.primitives} == {
                "add", "ask", "count", "work", "fail", "notes://one", "notes://by/{name}", "greet",
            }  # fmt: skip
            assert await call(attachment, client, "add", a=2, b=3) == "5"
            assert await call(attachment, client, "work") == "worked"
            assert client.notified == [("progress", 1, 2, None), ("progress", 2, 2, None)]
            assert "no luck" in await call(attachment, client, "fail")
            assert "unavailable" in await call(attachment, Client(abilities=frozenset()), "ask")
            asking = Client({"elicitation/create": {"action": "accept", "content": {"value": "Ann"}}})
            for _ in range(2):
                assert await call(attachment, asking, "ask") == "Ann"  # it asks in sessions only
            assert [await call(attachment, asking, "count") for _ in range(2)] == ["1", "2"]
            read = await attachment.request("resources/read", {"uri": "notes://by/Ö"}, client)
            assert read["contents"][0]["text"] == "note Ö"
            got = await attachment.request("prompts/get", {"name": "greet", "arguments": {"name": "Ann"}}, client)
            assert got["messages"][0]["content"]["text"] == "Greet Ann."
