"""Messages and headers that are not quite right, in both eras: what is refused, with which code, for which request."""

import json
from typing import Any

import anyio
import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.handshake import Session, open_session

PATIENCE_S = 20.0
NO_IDS: tuple[Any, ...] = (None, 1.5, 1.0, True, [1], {"a": 1}, "x" * 20_000)
LONG_IDS: tuple[str | int, ...] = ("", "x" * 10_000, 2**70, -(2**70))


@pytest.fixture
def acme(common_acme: Acme) -> Acme:
    """One for all that only ask."""
    common_acme.upstream.seen.clear()
    return common_acme


def _headers(acme: Acme, **more: str) -> dict[str, str]:
    sent = {"authorization": f"Bearer {acme.key}", "accept": ACCEPT, "content-type": "application/json"}
    return {**sent, **{name.replace("_", "-"): value for name, value in more.items()}}


async def _post(acme: Acme, body: object, path: str = "/t/acme/mcp", **headers: str) -> httpx.Response:
    return await acme.gateway.http.post(path, content=json.dumps(body), headers=_headers(acme, **headers))


def _request(method: str, params: object, request_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


async def _session(acme: Acme) -> Session:
    return await open_session(acme.gateway, acme.slug, acme.key)


def _error(answer: httpx.Response) -> dict[str, Any]:
    """The error of an answer, which has what every error of ours has."""
    error: dict[str, Any] = answer.json()["error"]
    assert error["data"]["code"]
    assert error["data"]["correlation_id"] == answer.headers["x-request-id"]
    return error


@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call"])
async def test_a_request_without_an_id_is_no_notification(acme: Acme, method: str) -> None:
    """MCP: a request's id is a string or an integer and never null; it is refused, not taken and forgotten (CAL-5)."""
    session = await _session(acme)
    params = {"name": "get_pet", "arguments": {"id": 7}} if method == "tools/call" else {}

    for named in NO_IDS:
        answer = await _post(acme, _request(method, params, named), mcp_session_id=session.id)
        assert (answer.status_code, _error(answer)["code"]) == (400, -32600), named
    assert acme.upstream.seen == []


async def test_a_request_of_the_old_transport_needs_an_id_too(acme: Acme) -> None:
    """MCP: the same at the URL that an HTTP+SSE stream names (CAL-5, SRV-1)."""
    with anyio.fail_after(PATIENCE_S):
        async with acme.gateway.http.stream("GET", "/t/acme/sse", headers=_headers(acme)) as stream:
            lines = stream.aiter_lines()
            while not (line := await anext(lines)).startswith("data: "):
                pass
            place = line.removeprefix("data: ")
            for named in NO_IDS:
                answer = await _post(acme, _request("ping", {}, named), place)
                assert (answer.status_code, _error(answer)["code"]) == (400, -32600), named


@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call"])
async def test_an_odd_id_comes_back_unchanged(acme: Acme, method: str) -> None:
    """MCP: the answer has the request's id, of the same type, however long it is (SRV-1)."""
    session = await _session(acme)
    params = {"name": "get_pet", "arguments": {"id": 7}} if method == "tools/call" else {}

    for named in LONG_IDS:
        answer = await _post(acme, _request(method, params, named), mcp_session_id=session.id)
        assert (answer.status_code, answer.json()["id"]) == (200, named)
        assert "result" in answer.json()


@pytest.mark.parametrize("named", ["s-1", 7, 2**70])
async def test_a_refusal_names_the_request_that_it_answers(own_acme: Acme, named: str | int) -> None:
    """JSON-RPC: an error has the id of its request, as soon as that could be read (CAL-5)."""
    session = await _session(own_acme)
    ping = _request("ping", {}, named)
    modern = _request("ping", {"_meta": META}, named)
    (await own_acme.gateway.admin.patch("/tenants/acme/policy", json={"limits": {"sessions": 1}})).raise_for_status()
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    refused = {
        404: [
            await _post(own_acme, ping, mcp_session_id="x" * 43),
            await _post(own_acme, ping, "/t/acme/messages?session_id=x"),
        ],
        400: [
            await _post(own_acme, ping),
            await _post(own_acme, _request("ping", [], named), mcp_session_id=session.id),
            await _post(own_acme, modern),
            await _post(own_acme, modern, mcp_protocol_version=MODERN, mcp_method="other"),
        ],
        429: [await _post(own_acme, _request("initialize", opening, named))],
    }

    for status, answers in refused.items():
        for answer in answers:
            assert (answer.status_code, answer.json()["id"]) == (status, named), answer.text
            _error(answer)


@pytest.mark.parametrize(
    ("method", "params", "code", "place"),
    [
        ("tools/call", {"name": 5}, -32602, "/params/name"),
        ("tools/call", {}, -32602, "/params/name"),
        ("tools/call", {"name": "get_pet", "arguments": []}, -32602, "/params/arguments"),
        ("tools/call", {"name": "get_pet", "_meta": {"progressToken": 1.5}}, -32602, "progressToken"),
        ("tools/list", {"cursor": 5}, -32602, "/params/cursor"),
        ("logging/setLevel", {"level": "loud"}, -32602, "/params/level"),
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}, -32602, "/params/clientInfo"),
        ("no/such", {}, -32601, "Method not found"),
        ("resources/list", {}, -32601, "Method not found"),
    ],
)
async def test_wrong_parameters_are_reported_with_code_and_place(
    acme: Acme, method: str, params: dict[str, Any], code: int, place: str
) -> None:
    """Ours: an error has a stable code, finds its log line and names the place; in sessions the HTTP status is 200
    (CAL-5).
    """
    session = await _session(acme)

    answer = await _post(acme, _request(method, params), mcp_session_id=session.id)

    assert (answer.status_code, _error(answer)["code"]) == (200, code)
    assert place in _error(answer)["message"]


@pytest.mark.parametrize(
    ("params", "headers", "code"),
    [
        ({}, {}, -32602),
        ({"_meta": {}}, {}, -32602),
        ({"_meta": {**META, "io.modelcontextprotocol/clientCapabilities": []}}, {}, -32602),
        ({"_meta": META, "cursor": 5}, {}, -32602),
        ({"_meta": META}, {"mcp_method": "tools/call"}, -32020),
        ({"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}}, {}, -32020),
    ],
)
async def test_every_refusal_of_the_modern_era_has_a_code_of_ours(
    acme: Acme, params: dict[str, Any], headers: dict[str, str], code: int
) -> None:
    """Ours: faults that the SDK finds have a stable code and the id of the log line (CAL-5)."""
    sent = {"mcp_protocol_version": MODERN, "mcp_method": "tools/list", **headers}

    answer = await _post(acme, _request("tools/list", params), **sent)

    assert (answer.status_code, _error(answer)["code"]) == (400, code)


async def test_an_envelope_of_another_era_gets_the_served_revisions(acme: Acme) -> None:
    """MCP: -32022 names the versions that are supported and the one asked for, with any header (SRV-1)."""
    version = "2025-11-25"
    body = _request("tools/list", {"_meta": {**META, "io.modelcontextprotocol/protocolVersion": version}})

    answer = await _post(acme, body, mcp_protocol_version=version, mcp_method="tools/list")

    error = _error(answer)
    assert (answer.status_code, error["code"]) == (400, -32022)
    assert (error["data"]["supported"], error["data"]["requested"]) == ([MODERN], version)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_an_unknown_revision_is_refused_on_every_verb(acme: Acme, verb: str) -> None:
    """MCP: an unsupported version header is 400; only a known one can mean that there are no streams (SRV-1)."""
    session = await _session(acme)

    for version, status in (("2099-01-01", 400), ("banana", 400), (MODERN, 405)):
        headers = _headers(acme, mcp_session_id=session.id, mcp_protocol_version=version)
        answer = await acme.gateway.http.request(verb, "/t/acme/mcp", headers=headers)
        assert answer.status_code == status
        if status == 400:
            assert _error(answer)["code"] == -32022
    assert (await session.rpc("ping"))["result"] == {}


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
@pytest.mark.parametrize("accept", ["application/json;q=0, text/event-stream", "application/json; q=0.000, */*"])
async def test_a_media_type_of_no_weight_is_refused_by_the_client(acme: Acme, era: str, accept: str) -> None:
    """RFC 9110 §12.4.2: a weight of 0 means "not acceptable" (CAL-5)."""
    body = _request("tools/list", {"_meta": META})

    answer = await _post(acme, body, accept=accept, mcp_protocol_version=era, mcp_method="tools/list")

    assert answer.status_code == 406


async def test_there_is_no_handshake_in_an_era_without_one(acme: Acme) -> None:
    """MCP: 2026-07-28 does not know `initialize` (SRV-1)."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}

    answer = await acme.gateway.rpc("acme", acme.key, "initialize", params)

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
