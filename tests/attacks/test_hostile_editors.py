"""Attacks of a program that pretends to be an editor: garbage, floods, lies and silence at the RPC socket."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import pytest

from gateway.domain.refusals import LiveSourceDetached, LiveSourceFailed
from tests.support.neovim import attached

_codec: Any = msgpack
pack: Callable[[object], bytes] = _codec.packb
GREETING = {"protocol": 1, "channel": 7, "title": "Neovim"}
TOOLS = b'{"tools":[{"name":"x","description":"x","inputSchema":{"type":"object"}}],"notices":[],"resources":true}'


@dataclass(slots=True)
class Pretender:
    """One connection of the gateway to the false editor."""

    writer: asyncio.StreamWriter

    def send(self, *messages: object) -> None:
        """Send messages as they are."""
        for message in messages:
            self.writer.write(message if isinstance(message, bytes) else pack(message))

    def reply(self, call: int, *parts: bytes, fault: str | None = None) -> None:
        """Reply to a call as the plugin does."""
        self.send(*([2, "mcp_gateway", ["part", call, part]] for part in parts))
        self.send([2, "mcp_gateway", ["done", call, fault]])


Attack = Callable[[Pretender, int], None]
"""Its answer to a call: it has the number of the call."""


@asynccontextmanager
async def pretending(folder: Path, on_call: Attack, *, greeting: object = GREETING) -> AsyncGenerator[str]:
    """A false editor at a socket, which introduces itself well and lists one tool; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        unpacker, editor = open_unpacker(), Pretender(writer)
        try:
            while piece := await reader.read(65536):
                unpacker.feed(piece)
                for message in unpacker:
                    _answer(editor, message, on_call, greeting)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_unix_server(serve, str(folder / "false.sock")):
        yield f"unix:{folder}/false.sock"


def _answer(editor: Pretender, message: Sequence[Any], on_call: Attack, greeting: object) -> None:
    if message[0] != 0:
        return
    _, number, method, params = message
    if method != "nvim_exec_lua":
        editor.send([1, number, None, None])
    elif params[1][0] == "attach":
        editor.send([1, number, None, greeting])
    elif params[1][0] == "discover":
        editor.send([1, number, None, None])
        editor.reply(params[1][2], TOOLS)
    elif params[1][0] == "detach":
        editor.send([1, number, None, None])
    else:
        editor.send([1, number, None, None])
        on_call(editor, params[1][2])


def open_unpacker() -> Any:
    """The library's unpacker, which has no types."""
    return _codec.Unpacker()


def ignore(_: Pretender, __: int) -> None:
    """Never reply."""


def nested(depth: int) -> bytes:
    """A list in lists."""
    return b"\x91" * depth + b"\x90"


RESULT = b'{"content":[]}'
NONE: list[object] = []


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\xc1", "invalid MessagePack"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "violated the protocol"),
        (pack(3), "violated the protocol"),
        (pack(NONE), "violated the protocol"),
        (pack([9, 1, None, None]), "violated the protocol"),
        (pack([1, 10**6, None, None]), "violated the protocol"),
        (pack([1, -1, None, None]), "violated the protocol"),
        (pack([1, "1", None, None]), "violated the protocol"),
        (pack([2, "x"]), "violated the protocol"),
        (pack([2, 3, NONE]), "violated the protocol"),
        (pack({"a": 1}), "violated the protocol"),
        (b"\xdd\xff\xff\xff\xff", "invalid MessagePack"),
        (b"\xdf\xff\xff\xff\xff", "invalid MessagePack"),
        (b"\xdb\xff\xff\xff\xff" + b"x" * 300_000, "262144 bytes"),
        (b"\x94\x02" + b"\xdc\x10\x00" * 2000, "invalid MessagePack"),
        (nested(5000), "invalid MessagePack"),
        (pack("x" * 300_000), "invalid MessagePack|262144 bytes"),
        (b"\xda\xff\xff" + b"x" * 65535 + b"\xdc\x10\x00" * 300_000, "invalid MessagePack|violated the protocol"),
        (pack([2, "x", NONE]) * 5000, "more than 1000 unexpected messages"),
        (pack([0, 1, "x", NONE]) * 5000, "more than 1000 unexpected messages"),
        (pack([2, "mcp_gateway", ["changed"]]) * 5000, "more than 1000 unexpected messages"),
        (pack([2, "mcp_gateway", ["updated", "buffers"]]) * 5000, "more than 1000 unexpected messages"),
        (pack([1, 1, None, None]) * 5000, "more than 1000 unexpected messages"),
    ],
)
async def test_an_editor_that_breaks_the_protocol_is_detached(tmp_path: Path, raw: bytes, reason: str) -> None:
    """Ours: the call ends with a clean error, and the attachment with a reason; memory is bounded (ISO-3)."""
    async with pretending(tmp_path, lambda editor, _: editor.send(raw)) as address, attached(address) as one:
        assert set(await one.tools()) == {"x"}
        with pytest.raises(LiveSourceDetached):
            await one.call("x")
        ended = await one.attachment.wait_closed()
        assert any(part in ended for part in reason.split("|")), ended
        with pytest.raises(LiveSourceDetached):
            await one.call("x")


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([b""], "invalid JSON"),
        ([b"{"], "invalid JSON"),
        ([b"[]"], "does not have the form that the protocol requires"),
        ([b"{}"], "does not have the form that the protocol requires"),
        ([b'{"content":3}'], "does not have the form that the protocol requires"),
        ([b'{"content":[],"content":[]}'], "invalid JSON"),
        ([b'{"content":[NaN]}'], "invalid JSON"),
        ([b'{"content":["\xff"]}'], "invalid JSON"),
        ([b'{"content":["\\ud800"]}'], "invalid JSON"),
        ([b'{"content":' + b"[" * 5000 + b"]" * 5000 + b"}"], "invalid JSON"),
        ([b'{"content":[' + b"9" * 5000 + b"]}"], "invalid JSON"),
        ([b'{"content":[', *([b"0," * 20_000] * 20), b"0]}"], "invalid JSON"),
        ([b"x" * 100_000] * 60, "more than 4194304 bytes"),
        ([b""] * 300, "or 200 parts"),
    ],
)
async def test_a_reply_that_is_no_result_costs_its_call(tmp_path: Path, parts: Sequence[bytes], reason: str) -> None:
    """Ours: depth, size and values of a reply are bounded; the attachment goes on (ISO-3, DYN-1)."""
    replies = [parts, [RESULT]]
    async with (
        pretending(tmp_path, lambda editor, call: editor.reply(call, *replies.pop(0))) as address,
        attached(address) as one,
    ):
        with pytest.raises(LiveSourceFailed, match=reason):
            await one.call("x")
        assert await one.call("x") == {"content": []}


async def test_replies_reach_the_call_that_they_name(tmp_path: Path) -> None:
    """Ours: parts and ends of other, ended or invented calls change nothing (DYN-2)."""

    def attack(editor: Pretender, call: int) -> None:
        for other in (0, -1, call + 1, call - 1, 2**63):
            editor.reply(other, b'{"content":["false"]}')
        editor.send([2, "mcp_gateway", ["part", str(call), b"false"]], [2, "mcp_gateway", ["done", call]])
        editor.send([2, "mcp_gateway", [["part"], call, b"false"]], [2, "other", ["done", call, None]])
        editor.reply(call, RESULT[:5], RESULT[5:])
        editor.reply(call, b"false")

    async with pretending(tmp_path, attack) as address, attached(address) as one:
        for _ in range(3):
            assert await one.call("x") == {"content": []}
        assert one.listener.updates == []


async def test_a_fault_is_shown_bounded(tmp_path: Path) -> None:
    """Ours: whatever an editor names as its fault, the message stays short (ISO-3)."""
    faults = ["boom", "x" * 40_000, "not found"]
    async with (
        pretending(tmp_path, lambda editor, call: editor.reply(call, fault=faults.pop(0))) as address,
        attached(address) as one,
    ):
        with pytest.raises(LiveSourceFailed, match="boom"):
            await one.call("x")
        with pytest.raises(LiveSourceFailed) as long:
            await one.call("x")
        assert len(long.value.message) < 600


async def test_silence_ends_in_time(tmp_path: Path) -> None:
    """Ours: an editor that never replies, or replies byte by byte without end, costs one time limit (DYN-1)."""
    async with pretending(tmp_path, ignore) as address, attached(address, timeout_s=0.2) as one:
        for _ in range(3):
            with pytest.raises(LiveSourceFailed, match="did not respond"):
                await one.call("x")
        assert set(await one.tools()) == {"x"}


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (None, "did not recognise"),
        ("text", "did not recognise"),
        ({}, "another version"),
        ({"protocol": 2, "channel": 7}, "another version"),
        ({"protocol": 1, "channel": "7"}, "another version"),
    ],
)
async def test_a_strange_introduction_is_no_attachment(tmp_path: Path, greeting: object, reason: str) -> None:
    """Ours: an answer that differs from the plugin's is not attached, and the admin reads the reason (DYN-1)."""
    async with pretending(tmp_path, ignore, greeting=greeting) as address:
        with pytest.raises(LiveSourceFailed, match=reason):
            async with attached(address):
                pass


async def test_a_program_that_closes_at_once_is_no_attachment(tmp_path: Path) -> None:
    """Ours: the end of the connection inside the handshake is its fault (DYN-1)."""

    async def leave(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_unix_server(leave, str(tmp_path / "x.sock")):
        with pytest.raises(LiveSourceDetached):
            async with attached(f"unix:{tmp_path}/x.sock"):
                pass
