"""Clients that send anything else than MCP: each line costs at most one error, on both kinds of server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.protocol.limits import MAX_BYTES
from gateway.protocol.stdio.limits import MAX_OPEN
from gateway.protocol.stdio.streams import Oversized, split_lines
from tests.behaviour.stdio.conftest import Tenant, documents_client, pets_document
from tests.support.stdio import RawClient

_DEEP = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}"
_MANY = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[' + b"[]," * 30_000 + b"1]}}"
LINES: list[tuple[bytes, int, object]] = [
    (b"nonsense", -32700, None),
    (b"{", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32700, None),
    (b'\xff\xfe{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700, None),
    (b'{"jsonrpc":"2.0","id":"\xff","method":"ping"}', -32700, None),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, None),
    (_DEEP, -32700, None),
    (b"\x00", -32700, None),
    (_MANY, -32600, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
    (b"null", -32600, None),
    (b'"ping"', -32600, None),
    (b"{}", -32600, None),
    (b'{"id":1,"method":"ping"}', -32600, 1),
    (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":"%s","method":"ping"}' % (b"x" * 2000), -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1}', -32600, None),
    (b" " * (MAX_BYTES + 1), -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * 3 * MAX_BYTES + b'"}}', -32600, None),
]


@pytest.fixture(params=["documents", "bridge"])
async def client(request: pytest.FixtureRequest, acme: Tenant) -> AsyncGenerator[RawClient]:
    """A client of a server of documents, and of a bridge."""
    async with AsyncExitStack() as stack:
        if request.param == "documents":
            serving = documents_client(pets_document(acme.upstream), upstream=acme.upstream)
        else:
            serving = acme.bridged()
        yield await stack.enter_async_context(serving)


async def test_each_malformed_line_is_answered_and_the_server_continues(client: RawClient) -> None:
    """MCP: parse errors have the id null, and cost nothing else; empty lines cost nothing at all (CAL-5)."""
    await client.shake_hands()
    for line, code, request_id in LINES:
        await client.send(b"", b"  \r", line)
        answer = await client.next()
        assert (answer["error"]["code"], answer["id"]) == (code, request_id), line[:80]
        assert answer["error"]["data"]["code"]
    assert (await client.ask("ping"))["result"] == {}


async def test_unknown_responses_and_notifications_are_ignored(client: RawClient) -> None:
    """MCP: a response or a notification gets no answer, whatever its content (CAL-5)."""
    await client.shake_hands()
    await client.send(
        {"jsonrpc": "2.0", "id": "none", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "method": "notifications/none"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": True}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": [], "progress": "x"}},
    )
    assert (await client.ask("ping"))["result"] == {}
    assert client.others == []


async def test_requests_before_the_handshake_are_refused(client: RawClient) -> None:
    """MCP: without `initialize` and without an envelope, a request has an error (SRV-1)."""
    assert "error" in await client.ask("tools/list")
    assert "error" in await client.ask("tools/call", {"name": "list_pets"})
    assert (await client.shake_hands())["protocolVersion"] == "2025-11-25"
    assert "result" in await client.ask("tools/list")


async def test_unknown_methods_and_revisions_are_refused(client: RawClient) -> None:
    """MCP: they have the protocol's own errors in 2026-07-28 (SRV-1)."""
    unknown = await client.ask("no/method", modern=True)
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    strange = await client.ask("tools/list", {"_meta": meta})
    assert unknown["error"]["code"] == -32601
    assert strange["error"]["code"] == -32022


async def test_open_requests_are_bounded_and_have_ids_of_their_own(client: RawClient, acme: Tenant) -> None:
    """Ours: a request beyond the limit, or with the id of an open one, is refused; the open ones end (TEN-3)."""
    acme.upstream.gate = gate = asyncio.Event()
    await client.shake_hands()
    call: dict[str, Any] = {"name": "list_pets", "arguments": {}}
    begun = [await client.begin("tools/call", call) for _ in range(MAX_OPEN)]
    too_many = await client.ask("tools/call", call)
    await client.send({"jsonrpc": "2.0", "id": begun[0], "method": "ping"})
    twin = await client.next()
    assert too_many["error"]["code"] == 42900
    assert (twin["error"]["code"], twin["id"]) == (-32600, None)  # with the id, it would be the first one's response
    gate.set()
    responses = {(await client.next())["id"] for _ in begun}
    assert responses == set(begun)
    assert (await client.ask("ping"))["result"] == {}


async def test_the_end_of_input_lets_requests_finish(client: RawClient, acme: Tenant) -> None:
    """Ours: a client that pipes its requests and ends gets every response (SRV-3)."""
    acme.upstream.gate = gate = asyncio.Event()
    await client.shake_hands()
    named = await client.begin("tools/call", {"name": "list_pets", "arguments": {}})
    await acme.upstream.arrived.wait()
    client.end()
    gate.set()
    assert "result" in await client.response_to(named)


async def test_a_last_line_without_its_end_is_a_message(client: RawClient) -> None:
    """Ours: a file need not end with a line feed (SRV-1)."""
    message = {"jsonrpc": "2.0", "id": "last", "method": "server/discover", "params": {"_meta": _META}}
    client.to.write(json.dumps(message).encode())
    client.end()
    assert "result" in await client.response_to("last")


async def test_a_client_that_closes_its_output_ends_the_server(acme: Tenant) -> None:
    """Ours: the output has no reader, so the server ends, even with its input open and calls in flight (SRV-3)."""
    async with documents_client(pets_document(acme.upstream), upstream=acme.upstream) as client:
        await client.shake_hands()
        await client.ask("ping")
        client.close_output()
        await client.begin("tools/list")


_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    """Ours: chunks may end anywhere, and a long line never stays in memory (CAL-5)."""
    text = b"a\n\nbb\r\n" + b"x" * 50 + b"\nc\n" + b"y" * 20 + b"\n" + b"z" * 21
    found = list(split_lines((text[at : at + size] for at in range(0, len(text), size)), 20))
    assert [line if isinstance(line, bytes) else None for line in found] == [
        *(b"a", b"", b"bb\r", None, b"c", b"y" * 20, None)
    ]
    assert any(isinstance(line, Oversized) for line in found)
