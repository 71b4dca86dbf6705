"""The page on providers: its transcript is what the endpoint does, its tables have its numbers, its example runs."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import anyio

from gateway.app.server.limits import FRAMES_PER_S
from gateway.app.server.websocket_protocol import FRAMES_BURST
from gateway.upstream.live.agent.limits import CALL_S, MAX_PRIMITIVES, MAX_QUESTIONS
from gateway.web.providers.connection import MESSAGES_BURST, CloseCode
from gateway.web.providers.limits import MAX_CONNECTIONS, MAX_MESSAGE_BYTES, MESSAGES_PER_S
from tests.support.providers import PATIENCE_S, ProviderStand, RecordingClient

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "providers.md").read_text()


def _transcript() -> list[tuple[str, dict[str, Any]]]:
    text = PAGE.partition("### Transcript")[2].split("```")[1].strip().replace("\n     ", "")
    return [(line[0], json.loads(line[2:])) for line in text.splitlines()]


def _as_printed(message: dict[str, Any], printed: dict[str, Any]) -> dict[str, Any]:
    """The message with the page's random values."""
    result = message.get("result", {})
    random = {name: printed["result"][name] for name in ("attachment", "resume") if name in result}
    return {**message, "result": {**result, **random}} if random else message


async def test_the_transcript_of_the_page_is_real(stand: ProviderStand) -> None:
    """Ours: a client in another language can be written from the page (DYN-4)."""
    calls: list[asyncio.Future[Any]] = []
    async with stand.connect(stand.keys.make("acme")) as provider:
        for direction, message in _transcript():
            if direction == "→":
                await provider.send(**{name: value for name, value in message.items() if name != "jsonrpc"})
                continue
            if message.get("method") == "tools/call":
                params = {name: message["params"][name] for name in ("name", "arguments")}
                request = stand.sources.find("laptop").request("tools/call", params, RecordingClient())
                calls.append(asyncio.ensure_future(request))
            elif message.get("method") == "notifications/cancelled":
                calls[-1].cancel()
            received = await provider.receive()
            if message.get("method") == "notifications/cancelled":
                message["params"]["reason"] = received["params"]["reason"]
            assert _as_printed(received, message) == message
        assert await calls[0] == {"content": [{"type": "text", "text": "built"}]}


def test_limits_and_close_codes_of_the_page_are_those_of_the_code() -> None:
    """Ours: the page has each number and each code (DYN-4)."""
    limits = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|", PAGE.partition("### Limits")[2], re.MULTILINE))
    assert limits["message"].startswith(f"{MAX_MESSAGE_BYTES // 2**20} MiB")
    assert limits["messages per second"] == f"{MESSAGES_PER_S:.0f}, in bursts {MESSAGES_BURST:.0f}"
    burst = f"{FRAMES_BURST:,.0f}"
    assert limits["control frames and fragments"] == f"{FRAMES_PER_S:.0f} per second, in bursts {burst}"
    assert limits["primitives of one source"].startswith(f"{MAX_PRIMITIVES},")
    assert limits["connections of one tenant and replica"] == str(MAX_CONNECTIONS)
    assert limits["one call"] == f"{CALL_S:.0f} s"
    assert limits["open questions of one call to its client"] == str(MAX_QUESTIONS)
    table = PAGE.partition("### Close codes")[2].partition("### Limits")[0]
    codes = {int(code) for row in re.findall(r"^\| ([0-9, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert codes == {1000, 1001, 1002, 1007, 1008, *CloseCode}


async def test_the_example_offers_its_notes(stand: ProviderStand, tmp_path: Path) -> None:
    """Ours: the example runs as it is (DYN-4)."""
    (tmp_path / "a.txt").write_text("one two\nthree")
    url = f"{stand.url.replace('ws:', 'http:')}/t/acme"
    command = [sys.executable, str(ROOT / "examples" / "provider.py"), url]
    variables = {**os.environ, "GATEWAY_KEY": stand.keys.make("acme"), "PYTHONPATH": str(ROOT)}
    async with await anyio.open_process(command, env=variables, cwd=tmp_path) as process:
        await stand.sources.wait_for_change("notes")
        attachment, client = stand.sources.find("notes"), RecordingClient()
        with anyio.fail_after(PATIENCE_S):
            counted = await attachment.request(
                "tools/call", {"name": "count_words", "arguments": {"name": "a.txt"}}, client
            )
            listed = await attachment.request("resources/read", {"uri": "notes://index"}, client)
            process.terminate()
            await process.wait()
    assert counted["structuredContent"] == {"lines": 2, "words": 3}
    assert client.received == [("progress", 1, 2, None), ("progress", 2, 2, None)]
    assert listed["contents"][0]["text"] == "a.txt"
