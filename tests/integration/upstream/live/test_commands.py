"""Programs on standard streams: their environment, their isolation from the gateway, and their end."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.domain.live_sources import LiveKind
from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from gateway.errors import BadInput
from gateway.upstream.live.command.connector import CommandConnector
from gateway.upstream.live.command.limits import MAX_FILES, MEMORY_BYTES
from gateway.upstream.live.interfaces import LiveAttachment
from gateway.upstream.live.mcp.changes import SKIPPED
from gateway.upstream.live.mcp.limits import MAX_MESSAGE_BYTES, MAX_MESSAGES
from tests.integration.upstream.live.parts import Client, Listener, attached_by, source
from tests.support.replicas import until

PROGRAM = [sys.executable, "-I", str(Path(__file__).with_name("stdio_program.py"))]


@asynccontextmanager
async def running(*more: str, listener: Listener | None = None, **settings: object) -> AsyncGenerator[LiveAttachment]:
    """Run the program while the block runs."""
    with anyio.fail_after(60):
        declared = source({"argv": [*PROGRAM, *more], **settings}, kind=LiveKind.COMMAND)
        async with attached_by(CommandConnector, declared, listener) as attachment:
            yield attachment


async def call(attachment: LiveAttachment, name: str, client: Client | None = None, **arguments: object) -> Any:
    """Call a tool of the program; return its text, or its JSON."""
    params = {"name": name, "arguments": arguments}
    text = (await attachment.request("tools/call", params, client or Client()))["content"][0]["text"]
    return json.loads(text) if text[:1] in {"{", "["} else text


def is_running(pid: int) -> bool:
    """True if the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_program_has_no_environment_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: secrets of the gateway do not reach it (DYN-5)."""
    monkeypatch.setenv("GATEWAY_OPERATOR_KEY", "secret")
    async with running(env={"LANG": "C.UTF-8", "TOKEN": "t"}) as attachment:
        found = await call(attachment, "environment")
        limits = await call(attachment, "limits")

    assert found.keys() - {"LC_CTYPE"} == {"PATH", "LANG", "TOKEN"}
    assert limits == [MEMORY_BYTES, MAX_FILES]


async def test_the_whole_group_ends_with_the_attachment() -> None:
    """Ours: children of the program do not outlive it, even if it ignores the end of its input."""
    async with running("--stubborn") as attachment:
        program, grandchild, group = await call(attachment, "group")
        assert group == program != os.getpgrp()
        assert is_running(grandchild)

    assert not is_running(program)
    await until(lambda: not is_running(grandchild), seconds=10)  # the kernel reports its end to no process here


async def test_calls_run_at_once_and_questions_reach_the_only_one() -> None:
    """Ours: a question goes to the one request that runs; with several, it is refused."""
    client = Client({"elicitation/create": {"action": "accept", "content": {}}})
    async with running() as attachment:
        assert await call(attachment, "ask", client) == {"action": "accept", "content": {}}

        waiting = Client()
        silent = asyncio.ensure_future(call(attachment, "silent", waiting))
        await waiting.received.wait()
        refused = await call(attachment, "ask", Client({"elicitation/create": {"action": "accept"}}))
        assert refused["code"] == -32601
        silent.cancel()
        await asyncio.gather(silent, return_exceptions=True)
        while await call(attachment, "cancelled") == "None":
            pass


async def test_a_cancelled_call_cannot_reach_the_next_client() -> None:
    """Ours: until the program responds to a call that was given up, its questions and logs could be about that call."""
    async with running() as attachment:
        first = Client()
        given_up = asyncio.ensure_future(call(attachment, "late", first))
        await first.received.wait()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)

        other = Client({"elicitation/create": {"action": "accept", "content": {}}})
        with anyio.fail_after(10):
            assert (await call(attachment, "resume", other))["code"] == -32601
        assert not other.asked
        assert not other.notified
        while isinstance(answer := await call(attachment, "ask", other), dict) and "code" in answer:
            pass  # until the response to the first call is read
        assert answer == {"action": "accept", "content": {}}


async def test_a_request_that_cannot_be_written_runs_nowhere() -> None:
    """Ours: a client cannot turn off the questions of other clients."""
    client = Client({"elicitation/create": {"action": "accept", "content": {}}})
    async with running() as attachment:
        with pytest.raises(BadInput):
            await call(attachment, "ask", client, text="\ud800")
        assert await call(attachment, "ask", client) == {"action": "accept", "content": {}}


async def test_a_client_without_the_capability_refuses() -> None:
    """Ours: the program learns it, and the call goes on."""
    async with running() as attachment:
        assert (await call(attachment, "ask", Client(abilities=frozenset())))["code"] == -32601


@pytest.mark.parametrize(
    ("tool", "reason"),
    [
        ("long", f"a line of more than {MAX_MESSAGE_BYTES:,} bytes"),
        ("chatter", "more than 10,000 messages about no request"),
        ("exit", "the server closed the connection"),
    ],
)
async def test_a_broken_program_ends_its_calls(tool: str, reason: str) -> None:
    """Ours: calls end at once with a reason, and the program is started again."""
    async with running() as attachment:
        await attachment.discover()
        with pytest.raises(LiveSourceDetached, match=reason):
            await call(attachment, tool)

        async def is_back() -> bool:
            try:
                return bool(await call(attachment, "ok") == "done")
            except LiveSourceDetached:
                return False

        await until(is_back, seconds=30)


async def test_a_line_that_is_no_message_costs_only_itself() -> None:
    """A banner or a log entry on standard output is skipped and reported; a garbled response ends its call (DYN-5)."""
    listener = Listener()
    async with running("--banner", listener=listener) as attachment:
        assert [one.name for one in (await attachment.discover()).primitives] == ["t"]
        assert set(listener.notices) == {SKIPPED}
        process = await call(attachment, "printing")
        with anyio.fail_after(10), pytest.raises(LiveSourceFailed, match="the key 'a'"):
            await call(attachment, "garbled")
        assert await call(attachment, "printing") == process


async def test_a_flood_about_one_request_ends_it() -> None:
    """Ours: messages about one request are bounded; what is dropped counts too."""
    async with running() as attachment:
        with pytest.raises(LiveSourceFailed, match="about one request"):
            await call(attachment, "progress", times=10_001)


@dataclass(slots=True)
class Stuck(Client):
    """A client that reads nothing until it is released."""

    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        self.received.set()
        await self.released.wait()

    async def log(self, level: str, data: object, logger: str | None = None) -> None:
        self.received.set()
        await self.released.wait()


async def test_a_client_that_does_not_read_delays_no_other() -> None:
    """Ours: its progress is dropped above 64 messages; its result and the calls of others arrive."""
    async with running() as attachment:
        client = Stuck()
        stuck = asyncio.ensure_future(call(attachment, "progress", client, times=1_000))
        await client.received.wait()
        with anyio.fail_after(10):
            for _ in range(3):
                assert await call(attachment, "ok") == "done"
        client.released.set()
        assert await stuck == "done"


async def test_questions_that_wait_for_a_client_are_bounded() -> None:
    """Ours: a question cannot be dropped, so the request ends."""
    listener = Listener()
    async with running(listener=listener) as attachment:
        client = Stuck()
        stuck = asyncio.ensure_future(call(attachment, "questions", client, times=100))
        await listener.has_updated.wait()  # the update comes after the questions
        client.released.set()
        with pytest.raises(LiveSourceFailed, match="more than 64 messages of the server wait"):
            await stuck


async def test_a_program_may_report_changes_for_as_long_as_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: messages about no request are counted within a minute, here of no length."""
    monkeypatch.setattr("gateway.upstream.live.mcp.duplex.UNSOLICITED_S", 0.0)
    listener = Listener()
    async with running(listener=listener) as attachment:
        assert await call(attachment, "updates", times=MAX_MESSAGES + 1) == "done"
    assert len(listener.updates) == MAX_MESSAGES + 1


async def test_standard_error_is_bounded_and_drained() -> None:
    """Ours: a program that writes without end neither blocks nor fills the log."""
    async with running() as attachment:
        assert await call(attachment, "noise") == "done"


async def test_a_lost_program_is_reported() -> None:
    """Ours: a program that cannot be started again ends the attachment with a reason."""
    with anyio.fail_after(60):
        name = "/bin/cat"
        with pytest.raises(LiveSourceFailed):
            async with attached_by(CommandConnector, source({"argv": [name], "timeout_s": 0.5})):
                pass


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"argv": []},
        {"argv": "sh -c id"},
        {"argv": ["/no/such/program"]},
        {"argv": ["a\0b"]},
        {"argv": [sys.executable], "env": {"A": 1}},
        {"argv": ["/bin/true"]},
        {"argv": ["/bin/echo", "hello"]},
    ],
    ids=range(8),
)
async def test_a_command_that_is_no_server_is_refused(settings: dict[str, object]) -> None:
    """Ours: a wrong command has a reason, and no shell reads it."""
    with anyio.fail_after(30), pytest.raises(LiveSourceFailed) as caught:
        async with attached_by(CommandConnector, source(settings, kind=LiveKind.COMMAND)):
            pass
    assert caught.value.message.isprintable()


async def test_a_closing_that_is_cut_short_leaves_no_program() -> None:
    """Ours: the gateway gives closing only some seconds, and the program ends all the same."""
    with anyio.fail_after(60):
        declared = source({"argv": [*PROGRAM, "--stubborn"]}, kind=LiveKind.COMMAND)
        attaching = attached_by(CommandConnector, declared)
        attachment = await attaching.__aenter__()
        program, grandchild, _ = await call(attachment, "group")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await attaching.__aexit__(None, None, None)
        await until(lambda: not is_running(program) and not is_running(grandchild), seconds=30)
