"""The client in memory: a program tests its own primitives without PostgreSQL, Redis and sockets."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types import (
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
    LoggingMessageNotificationParams,
    PromptReference,
    Root,
    TextContent,
)
from pydantic import FileUrl

from gateway.embed import Completing, Context, Gateway, load_settings, success
from tests.behaviour.cli.conftest import environment

MODES = ("auto", "legacy", "2026-07-28")
modes = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def program() -> Gateway:
    """A program with a primitive of each family."""
    gateway = Gateway()

    @gateway.tool
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        return a + b

    @gateway.tool(safety="safe")
    async def work(context: Context) -> str:
        """Works."""
        await context.log("info", {"step": 1})
        await context.log("debug", "detail")
        await context.progress(1, 2, "half")
        return "done"

    @gateway.tool
    async def talk(context: Context) -> dict[str, Any]:
        """Asks the client for everything that it has."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        reply = await context.ask("Who are you?", schema)
        roots = await context.roots()
        message: dict[str, object] = {"role": "user", "content": {"type": "text", "text": "hi"}}
        sampled = await context.sample([message], max_tokens=5)
        return {"name": reply.content["name"], "root": roots[0]["uri"], "sampled": sampled["content"]["text"]}

    @gateway.tool(safety="dangerous")
    def wipe() -> str:
        """Deletes everything."""
        return "wiped"

    @gateway.resource("notes://{day}", mime_type="application/json")
    def note(day: int) -> dict[str, int]:
        """The note of a day."""
        return {"day": day + 1}

    def suggest(completing: Completing) -> list[str]:
        return [each for each in ("kind", "plain") if each.startswith(completing.value)]

    @gateway.prompt(complete=suggest)
    def review(text: str, tone: str = "kind") -> str:
        """Reviews a text."""
        return f"{tone}: {text}"

    return gateway


@modes
async def test_every_family_is_served_in_memory(program: Gateway, mode: str) -> None:
    """Ours: lists, calls, reads, prompts and completion are those of a gateway with servers (PRG-1)."""
    async with program.client(mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["add", "talk", "wipe", "work"]
        added = await client.call_tool("add", {"a": 40})
        assert getattr(added.content[0], "text", None) == "42"
        assert (await client.call_tool("add", {"a": "many"})).is_error
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "notes://{day}"
        (read,) = (await client.read_resource("notes://6")).contents
        assert json.loads(getattr(read, "text", "")) == {"day": 7}
        (message,) = (await client.get_prompt("review", {"text": "a"})).messages
        assert getattr(message.content, "text", None) == "kind: a"
        found = await client.complete(PromptReference(name="review"), {"name": "tone", "value": "p"})
        assert found.completion.values == ["plain"]
        with pytest.raises(MCPError, match="not found"):
            await client.read_resource("other://x")
        with pytest.raises(MCPError, match="Tool not found"):
            await client.call_tool("missing")


@modes
async def test_progress_and_log_messages_arrive(program: Gateway, mode: str) -> None:
    """Ours: a program sees what its tools report while they run (PRG-1)."""
    logged: list[object] = []
    reported: list[tuple[float, float | None, str | None]] = []

    async def on_log(params: LoggingMessageNotificationParams) -> None:
        logged.append(params.data)

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total, message))

    async with program.client(mode=mode, logging_callback=on_log) as client:
        await client.call_tool("work", progress_callback=on_progress)
        assert (logged, reported) == ([{"step": 1}, "detail"], [(1, 2, "half")])
        if mode == "legacy":
            with pytest.warns(MCPDeprecationWarning):
                await client.set_logging_level("info")  # pyright: ignore[reportDeprecated]
            await client.call_tool("work")
            assert logged[2:] == [{"step": 1}]


@modes
async def test_a_tool_asks_the_client_in_memory(program: Gateway, mode: str) -> None:
    """MCP: elicitation, roots and sampling reach the callbacks of the test in both eras (PRG-1)."""

    async def reply(context: Any, params: ElicitRequestParams) -> ElicitResult:
        del context
        return ElicitResult(action="accept", content={"name": "Ada"} if "Who" in params.message else {"confirm": True})

    async def sample(context: Any, params: Any) -> CreateMessageResult:
        del context, params
        return CreateMessageResult(
            role="assistant", content=TextContent(text="hello"), model="m", stop_reason="endTurn"
        )

    async def list_roots(context: Any) -> ListRootsResult:
        del context
        return ListRootsResult(roots=[Root(uri=FileUrl("file:///work"))])

    async with program.client(
        mode=mode, elicitation_callback=reply, sampling_callback=sample, list_roots_callback=list_roots
    ) as client:
        talked = await client.call_tool("talk")
        assert talked.structured_content == {"name": "Ada", "root": "file:///work", "sampled": "hello"}
        assert not (await client.call_tool("wipe")).is_error


@modes
async def test_the_policy_of_one_person_applies_in_memory(program: Gateway, mode: str) -> None:
    """Ours: a deleting call needs a confirmation, and settings replace the decision (PRG-1, SAF-2)."""
    async with program.client(mode=mode) as client:
        assert (await client.call_tool("wipe")).is_error  # this client cannot ask its user
    open_to_all = Gateway(load_settings(tenant_policy=("dangerous=allow",)))

    @open_to_all.tool(safety="dangerous")
    def wipe() -> str:
        return "wiped"

    async with open_to_all.client(mode=mode) as client:
        assert not (await client.call_tool("wipe")).is_error


async def test_a_client_in_memory_sees_its_tenant_and_later_changes(program: Gateway) -> None:
    """Ours: registrations for other tenants do not exist, and a change applies to the next request (PRG-1, TEN-5)."""

    @program.tool(tenants=["acme"])
    def own(context: Context) -> str:
        """Returns its tenant."""
        return context.tenant

    async with program.client(tenant="acme") as acme, program.client(tenant="globex") as globex:
        assert getattr((await acme.call_tool("own")).content[0], "text", None) == "acme"
        assert "own" not in {tool.name for tool in (await globex.list_tools()).tools}
        program.register_tool(
            "later", {"description": "x", "inputSchema": {"type": "object", "properties": {}}}, lambda _: success({})
        )
        program.unregister_tool("add")
        names = {tool.name for tool in (await globex.list_tools(cache_mode="refresh")).tools}
        assert "later" in names
        assert "add" not in names
        assert not (await globex.call_tool("later")).is_error


async def test_a_failure_in_the_block_is_raised_as_it_is(program: Gateway) -> None:
    """Ours: a test sees its own assertion, not the groups of the SDK's tasks (PRG-1)."""
    with pytest.raises(AssertionError, match="mine"):
        async with program.client():
            raise AssertionError("mine")


_ALONE = """
import asyncio, sys
seen = []
sys.addaudithook(lambda name, _: seen.append(name) if name in {"socket.bind", "socket.connect"} else None)
from gateway.embed import Gateway
gateway = Gateway()

@gateway.tool
def add(a: int, b: int) -> int:
    return a + b

async def main():
    async with gateway.client() as client:
        return (await client.call_tool("add", {"a": 1, "b": 2})).content[0].text

print(asyncio.run(main()), seen)
"""


def test_no_server_socket_or_file_is_needed(tmp_path: Path) -> None:
    """Ours: the process connects to nothing, listens nowhere and leaves no file (PRG-1)."""
    command = [sys.executable, "-P", "-c", _ALONE]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )

    assert (done.stdout, done.stderr) == ("3 []\n", "")
    assert list(tmp_path.iterdir()) == []
