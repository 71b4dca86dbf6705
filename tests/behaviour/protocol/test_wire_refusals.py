"""Refusals of wrong headers: status, body, and the remedy they name."""

import gzip
import json
from typing import Any

import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.handshake import Session, open_session

VERSION = "mcp-protocol-version"
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": "l", "method": "tools/list", "params": {}}

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture
def acme(common_acme: Acme) -> Acme:
    """A tenant that these tests share."""
    return common_acme


@pytest.fixture
async def session(acme: Acme) -> Session:
    """An open session of the tenant."""
    return await open_session(acme.gateway, "acme", acme.key)


async def _ask(session: Session, *more: tuple[str, str], verb: str = "POST", body: Any = LIST) -> httpx.Response:
    headers = [("authorization", f"Bearer {session.key}"), ("accept", ACCEPT), ("mcp-session-id", session.id), *more]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    if verb == "POST":
        headers.append(("content-type", "application/json"))
    return await session.gateway.http.request(
        verb, "/t/acme/mcp", content=content if verb == "POST" else None, headers=headers
    )


@pytest.mark.parametrize("version", ["2099-01-01", "banana", "2025-11-25, 2025-06-18", "x" * 500])
async def test_an_unknown_revision_is_named_in_a_session(session: Session, version: str) -> None:
    """MCP: an unsupported version header is 400, and the error lists the supported ones (SRV-1, CAL-5)."""
    answer = await _ask(session, (VERSION, version))

    error = answer.json()["error"]
    assert (answer.status_code, answer.json()["id"], error["code"]) == (400, "l", -32022)
    assert version[:64] in error["message"]
    assert error["data"]["requested"] == version[:64]
    assert set(error["data"]["supported"]) >= {"2024-11-05", "2025-11-25", MODERN}


@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("second", ["2025-06-18", MODERN, "banana"])
async def test_version_headers_that_differ_are_refused(session: Session, verb: str, second: str) -> None:
    """Ours: a proxy and the gateway never follow two different revisions (TEN-5, CAL-5)."""
    for pair in (("2025-11-25", second), (second, "2025-11-25")):
        answer = await _ask(session, *((VERSION, version) for version in pair), verb=verb)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert (await _ask(session, (VERSION, "2025-11-25"), (VERSION, "2025-11-25"))).status_code == 200


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "aws-chunked"])
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
async def test_a_compressed_body_is_refused(session: Session, coding: str, version: str) -> None:
    """RFC 9110 §15.5.16: 415, and the coding that is taken; nothing is inflated (CAL-5, TEN-5)."""
    bomb = gzip.compress(b"[" * 1_000_000)
    answer = await _ask(session, ("content-encoding", coding), (VERSION, version), body=bomb)

    assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
    assert "Content-Encoding" in answer.json()["error"]["message"]


async def test_a_body_with_identity_encoding_is_accepted(session: Session) -> None:
    """RFC 9110 §8.4: `identity` is no coding (SRV-1)."""
    assert (await _ask(session, ("content-encoding", "Identity"))).status_code == 200


@pytest.mark.parametrize("verb", ["GET", "DELETE", "PUT", "OPTIONS"])
async def test_a_method_that_a_revision_has_not_is_refused_in_words(session: Session, verb: str) -> None:
    """RFC 9110: 405 lists the allowed methods, also in its body (SRV-1)."""
    answer = await _ask(session, (VERSION, MODERN), verb=verb)

    assert answer.status_code == 405
    assert all(name in answer.json()["error"]["message"] for name in answer.headers["allow"].split(", "))


async def test_a_stream_that_the_client_does_not_take_is_refused_in_words(acme: Acme) -> None:
    """RFC 9110: 406 names the types to accept, in its body (SRV-1)."""
    params = {"_meta": META, "notifications": {"toolsListChanged": True}}
    answer = await acme.gateway.rpc("acme", acme.key, "subscriptions/listen", params, accept="application/json")

    assert (answer.status_code, answer.json()["id"]) == (406, 1)
    assert "text/event-stream" in answer.json()["error"]["message"]


async def test_a_stream_is_no_answer_to_a_client_that_takes_json_alone(acme: Acme, session: Session) -> None:
    """RFC 9110: both kinds of GET stream are refused with 406, which names the type to accept (SRV-1)."""
    headers = {"authorization": f"Bearer {acme.key}", "accept": "application/json", "mcp-session-id": session.id}
    for suffix in ("mcp", "sse"):
        answer = await acme.gateway.http.get(f"/t/acme/{suffix}", headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (406, "application/json")
        assert "text/event-stream" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/t/acme/mcp/", "/t/acme/default/mcp/"])
async def test_a_url_with_a_slash_at_its_end_is_the_same(acme: Acme, path: str) -> None:
    """A fixed bug: clients add a slash; a session was opened nowhere, and its 404 read as the end of it (SRV-1)."""
    http, headers = acme.gateway.http, {"authorization": f"Bearer {acme.key}", "accept": ACCEPT}
    opened = await http.post(path, json=HELLO, headers=headers)
    named = {**headers, "mcp-session-id": opened.headers["mcp-session-id"]}
    listed = await http.post(path, json={**LIST, "method": "ping"}, headers=named)
    closed = await http.delete(path, headers=named)
    async with http.stream("GET", path.replace("mcp", "sse"), headers=headers) as stream:
        lines = stream.aiter_lines()
        sent = [await anext(lines), await anext(lines)]

    assert [answer.status_code for answer in (opened, listed, closed, stream)] == [200, 200, 200, 200]
    assert sent[1].startswith(f"data: {path.removesuffix('mcp/')}messages?session_id=")
    for doubled in (f"{path}/", path.replace("mcp/", "mcp//")):
        assert (await http.post(doubled, json=HELLO, headers=headers)).status_code == 404


async def test_a_batch_is_refused_with_the_way_to_send_it(session: Session) -> None:
    """Ours: revision 2025-03-26 has batches; as in the official SDKs, each message is a request of its own (SRV-1)."""
    answer = await _ask(session, (VERSION, "2025-03-26"), body=[LIST, LIST])

    assert answer.status_code == 400
    assert "send each message as a request of its own" in answer.json()["error"]["message"]


async def test_an_empty_cursor_means_the_first_page(acme: Acme, session: Session) -> None:
    """Ours: clients that send one have no page yet; every other cursor has to be ours (RES-3)."""
    first = (await session.rpc("tools/list"))["result"]
    modern = (await acme.gateway.rpc("acme", acme.key, "tools/list", {"cursor": ""})).json()["result"]

    assert (await session.rpc("tools/list", {"cursor": ""}))["result"] == first
    assert modern["tools"] == first["tools"]


@pytest.mark.parametrize(
    ("credential", "challenge"),
    [
        (None, "Bearer"),
        ("Basic YTpi", "Bearer"),
        ("Bearer", "Bearer"),
        ("Bearer wrong", 'Bearer error="invalid_token"'),
        ("bearer wrong", 'Bearer error="invalid_token"'),
    ],
)
@pytest.mark.parametrize("path", ["/t/acme/mcp", "/t/nobody/sse", "/admin/v1/tenants", "/metrics"])
async def test_every_401_names_the_header_of_a_key(
    acme: Acme, path: str, credential: str | None, challenge: str
) -> None:
    """RFC 6750 §3: a wrong key is an error of the token, none is not; ours: both name the header to send. A tenant
    without an issuer refers to no metadata, because there is none, and a client would try to register (TEN-2).
    """
    headers = {} if credential is None else {"authorization": credential}
    answer = await acme.gateway.http.get(path, headers=headers)

    reported = answer.json().get("detail") or answer.json()["error"]["message"]
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge)
    assert "send the header `Authorization: Bearer KEY`" in reported
