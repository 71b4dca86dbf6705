"""Large messages of MCP servers: they have room while they are received, and a bounded number of values."""

import json
from typing import Any

import anyio
import pytest

from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.live.parts import TENANT, Client, attached_by, mcp_connector, source
from tests.integration.upstream.live.scripted_server import EVENTS, Scripted, attached_to, event, result
from tests.integration.upstream.loopback import Exchange, loopback

CALL: dict[str, Any] = {"name": "t", "arguments": {}}
SIZE = 2 * 2**20


@pytest.mark.parametrize("is_stream", [False, True])
async def test_a_large_message_has_room_until_it_is_parsed(is_stream: bool) -> None:
    """ISO-3: JSON bodies and events of live sources count like other bodies; a stream that goes on keeps nothing."""
    script, rest = Scripted(), anyio.Event()

    async def large(exchange: Exchange, message: dict[str, Any]) -> None:
        content = result(message, {"content": [{"type": "text", "text": "x" * SIZE}]})
        raw = event(content) if is_stream else json.dumps(content).encode()
        length = f"Content-Length: {len(raw)}\r\n".encode()
        head = EVENTS if is_stream else b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + length + b"\r\n"
        await exchange.write(head, raw[: SIZE // 2])
        await rest.wait()
        await exchange.write(raw[SIZE // 2 :])

    script.replies["tools/call"] = large
    async with loopback(script.answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        pool, got = upstream.room.slot_pool, list[Any]()
        declared = source({"url": f"http://{server.authority}/mcp"})
        connector = mcp_connector(upstream)

        async def call() -> None:
            got.append(await attachment.request("tools/call", CALL, Client()))

        with anyio.fail_after(30):
            async with attached_by(connector, declared) as attachment, anyio.create_task_group() as group:
                group.start_soon(call)
                while pool.held(TENANT) == 0:  # noqa: ASYNC110  # the socket has no event
                    await anyio.sleep(0.001)
                assert pool.held(TENANT) == 10
                rest.set()
        assert len(got[0]["content"][0]["text"]) == SIZE
        assert (pool.busy, pool.waiting) == (0, 0)


@pytest.mark.parametrize("part", [b"{}", b"1"])
async def test_a_message_of_very_many_values_is_refused(part: bytes) -> None:
    """ISO-2: a message of 10 MiB whose parts are two bytes would hold the interpreter lock for two seconds."""
    script = Scripted()
    raw = b",".join([part] * 250_000)
    script.states("tools/call", b'{"jsonrpc":"2.0","id":2,"result":{"structuredContent":{"a":[' + raw + b"]}}}")
    async with attached_to(script) as world:
        with pytest.raises(LiveSourceFailed, match="more than 200000 JSON values, or more than 50000 objects"):
            await world.attachment.request("tools/call", CALL, Client())
