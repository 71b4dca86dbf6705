"""Understanding of a client's headers: whitespace around a value, and the preferred form of the response."""

import json

import anyio
import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.documents import many
from tests.support.gateway import META, MODERN
from tests.support.handshake import open_session

PATIENCE_S = 10

JSON, STREAM = "application/json", "text/event-stream"


@pytest.mark.parametrize("name", ["get_pet", "  get_pet", "get_pet\t ", " \tget_pet  "])
async def test_whitespace_around_a_header_is_no_part_of_it(acme: Acme, name: str) -> None:
    """RFC 9110 §5.5: a field's value is judged without the whitespace around it (SRV-1)."""
    params = {"name": "get_pet", "arguments": {"id": 7}, "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    head = [
        f"POST /t/{acme.slug}/mcp HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {acme.key}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {MODERN}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {name}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    reported = b""
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.connect_tcp("127.0.0.1", httpx.URL(acme.gateway.url).port or 0) as stream:
            await stream.send("\r\n".join([*head, "", body]).encode())
            async for part in stream:
                reported += part

    assert reported.startswith(b"HTTP/1.1 200 ")
    assert b'"isError":false' in reported.replace(b" ", b"")
    assert acme.upstream.seen[-1].target == "/v1/pets/7"


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (f"{JSON}, {STREAM}", JSON),
        (f"{STREAM}, {JSON}", STREAM),
    ],
)
async def test_a_client_of_a_session_gets_the_form_that_it_names_first(acme: Acme, accept: str, kind: str) -> None:
    """MCP: a request is answered with JSON or with a stream; ours: with what the client would rather have (SRV-1)."""
    session = await open_session(acme.gateway, acme.slug, acme.key)
    headers = {"authorization": f"Bearer {acme.key}", "mcp-session-id": session.id, "accept": accept}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_pet", "arguments": {"id": 7}}}

    answer = await acme.gateway.http.post(f"/t/{acme.slug}/mcp", json=call, headers=headers)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert acme.upstream.seen[-1].target == "/v1/pets/7"


@pytest.mark.parametrize(("length", "kind"), [(1, STREAM), (2000, JSON)])
async def test_a_large_list_is_json_for_every_client(acme: Acme, length: int, kind: str) -> None:
    """Ours: a stream would store megabytes of a list in Redis for each request (TEN-5)."""
    document = many(acme.upstream.url, 300)
    for operations in document["paths"].values():
        operations["get"]["description"] = "x" * length
    await acme.gateway.import_document(acme.slug, document, name="many")
    session = await open_session(acme.gateway, acme.slug, acme.key)
    headers = {"authorization": f"Bearer {acme.key}", "mcp-session-id": session.id, "accept": f"{STREAM}, {JSON}"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    answer = await acme.gateway.http.post(f"/t/{acme.slug}/mcp", json=listing, headers=headers)

    assert answer.headers["content-type"] == kind
    assert '"get_pet"' in answer.text
    assert '"op_0095"' in answer.text
