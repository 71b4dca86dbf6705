"""`gateway provide`: programs without a WebSocket client speak the protocol on standard streams (DYN-4)."""

import asyncio
import json
import multiprocessing
import os
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import anyio.to_thread
import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Response

from tests.support.forks import Forked
from tests.support.providers import PATIENCE_S, TOOL, ProviderStand, RecordingClient

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "provider/hello", "params": {"version": 1, "source": "editor"}}
REGISTER = {"jsonrpc": "2.0", "id": 2, "method": "provider/register", "params": {"tools": [TOOL]}}


class Program:
    """The command, and the program that started it."""

    def __init__(self, child: Forked, stdin: BinaryIO, errors: Path) -> None:
        assert child.stdout is not None
        self._child, self._stdin, self._errors, self._stdout = child, stdin, errors, child.stdout

    async def send(self, message: object) -> None:
        line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        await anyio.to_thread.run_sync(self._stdin.write, line)

    async def receive(self) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            found: dict[str, Any] = json.loads(await anyio.to_thread.run_sync(self._stdout.readline))
            return found

    async def end(self, *, close: bool = True) -> tuple[int, bytes]:
        """Close standard input by default; the exit code, and the content of standard error."""
        if close:
            self._stdin.close()
        code = await anyio.to_thread.run_sync(self._child.wait, PATIENCE_S)
        return code, self._errors.read_bytes()


@asynccontextmanager
async def program(
    stand: ProviderStand, key: str, *, slug: str = "acme", url: str | None = None, **variables: str
) -> AsyncGenerator[Program]:
    """The running command."""
    target = f"{url or stand.url.replace('ws:', 'http:')}/t/{slug}"
    with tempfile.TemporaryDirectory(prefix="gwp-") as folder:
        errors = Path(folder, "errors")
        environment = {**os.environ, "GATEWAY_KEY": key, **variables}

        def start() -> tuple[Forked, BinaryIO]:
            reader, writer = multiprocessing.Pipe(duplex=False)
            with reader, writer:
                child = Forked(["provide", "--url", target], environment, given=reader, errors=errors)
                return child, os.fdopen(os.dup(writer.fileno()), "wb", buffering=0)

        child, stdin = await anyio.to_thread.run_sync(start)
        try:
            yield Program(child, stdin, errors)
        finally:
            stdin.close()
            child.end()


@pytest.mark.refill
async def test_lines_are_messages_both_ways(stand: ProviderStand) -> None:
    """Ours: a call travels over the command; the end of standard input detaches at once."""
    async with program(stand, stand.keys.make("acme")) as editor:
        await editor.send(HELLO)
        assert (await editor.receive())["result"]["resumed"] is False
        await editor.send(REGISTER)
        assert (await editor.receive())["result"]["primitives"] == 1
        attachment = stand.sources.find("editor")
        params = {"name": "save", "arguments": {"text": "ä\u2028\n" + "x" * 2_000_000}}
        call = asyncio.ensure_future(attachment.request("tools/call", params, RecordingClient()))
        request = await editor.receive()
        assert request["params"]["arguments"] == params["arguments"]
        large = {"content": [{"type": "text", "text": "y" * 2_000_000}]}
        await editor.send({"jsonrpc": "2.0", "id": request["id"], "result": large})
        assert await call == large
        assert await editor.end() == (0, b"")
        await stand.sources.wait_until_gone("editor")


@pytest.mark.parametrize(
    ("sent", "exit_code", "reported"),
    [
        (b"nonsense\n", 1, b"closed 4400"),
        (b"\xff\n", 1, b"closed 1007"),
        (b"x" * 5_000_000 + b"\n", 1, b"closed 1009"),
    ],
)
async def test_a_refused_message_ends_the_command_with_its_code(
    stand: ProviderStand, sent: bytes, exit_code: int, reported: bytes
) -> None:
    """Ours: the program learns the close code."""
    async with program(stand, stand.keys.make("acme")) as editor:
        await editor.send(HELLO)
        await editor.receive()
        await editor.send(sent)
        code, lines = await editor.end(close=False)
        assert code == exit_code
        assert reported in lines


async def test_the_key_goes_through_no_proxy_of_the_environment(stand: ProviderStand) -> None:
    """Ours: a proxy that was set for web pages does not receive the key (TEN-5)."""
    proxies = dict.fromkeys(("https_proxy", "http_proxy", "all_proxy"), "http://127.0.0.1:9")
    async with program(stand, stand.keys.make("acme"), **proxies, no_proxy="") as editor:
        await editor.send(HELLO)
        assert (await editor.receive())["result"]["resumed"] is False


@pytest.mark.parametrize(
    ("status", "close_code", "exit_code"),
    [(500, 0, 7), (502, 0, 7), (503, 0, 7), (504, 0, 7), (429, 0, 7), (400, 0, 1), (0, 1008, 3), (0, 1011, 3)],
)
async def test_faults_that_pass_have_the_exit_codes_of_another_try(
    stand: ProviderStand, status: int, close_code: int, exit_code: int
) -> None:
    """Ours: an editor goes on after a proxy's answer in a restart, and after too many fragments."""

    async def refuse(connection: ServerConnection, _: object) -> Response | None:
        return connection.respond(HTTPStatus(status), "") if status else None

    async def close(connection: ServerConnection) -> None:
        await connection.close(close_code)

    async with serve(close, "127.0.0.1", 0, process_request=refuse) as server:
        url = f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        async with program(stand, "key", url=url) as editor:
            assert (await editor.end(close=False))[0] == exit_code


async def test_a_refused_key_and_a_takeover_have_exit_codes(stand: ProviderStand) -> None:
    """Ours: a program sees from the exit code whether it may try again."""
    key = stand.keys.make("acme")
    async with program(stand, "mcpg_live_wrong") as editor:
        assert (await editor.end())[0] == 4
    async with program(stand, key, slug="other") as editor:
        assert (await editor.end())[0] == 5
    async with program(stand, key) as older, program(stand, key) as newer:
        for editor in (older, newer):
            await editor.send(HELLO)
            await editor.receive()
        code, reported = await older.end(close=False)
        assert (code, b"closed 4410" in reported) == (6, True)
