"""The short way and the long way give the same answer: each request is sent as it is, and made odd so that the SDK
answers it.

An unknown member in `_meta` changes nothing of a request's meaning. The short way recognises none that has one of the
protocol's own names, and all that have others.
"""

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx
import pytest
from mcp_types import CallToolRequestParams
from mcp_types.methods import serialize_server_result

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.handlers.interfaces import Peer
from gateway.protocol.fast_path import is_candidate
from gateway.protocol.methods.peers import peer_for_request
from gateway.protocol.request_context import SdkContext
from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, META, MODERN

ODD = {"io.modelcontextprotocol/odd": 1}
JSON = ("application/json", b'{"id": 7, "big": 123456789012345678901, "n": 1.10}')
ANSWERS: tuple[tuple[int, str, bytes], ...] = (
    (200, *JSON),
    (200, "application/json", b"[1, 2, {}]"),
    (200, "application/json", b'"text"'),
    (200, "application/json", b"null"),
    (200, "application/json", b'{"a": null, "b": [null, {"c": null}]}'),
    (200, "application/json", b'{"structuredContent": 1, "isError": true, "_meta": {"a": {}}}'),
    (200, "application/json", b'[",\\"isError\\":", {"_meta": {}}]'),
    (200, "application/json", b"{broken"),
    (200, "text/plain", "Ünï \u2028 \x07".encode()),
    (200, "image/png", b"\x89PNG"),
    (200, "application/pdf", b"%PDF\xff"),
    (204, "", b""),
    (302, "", b""),
    (404, "application/json", b'{"detail": "}"}'),
    (500, "text/html", b"<p>busy</p>"),
)
CALLS: tuple[dict[str, Any], ...] = (
    {"name": "get_pet", "arguments": {"id": 7, "verbose": True}},
    {"name": "get_pet", "arguments": {"id": "seven"}},
    {"name": "get_pet", "arguments": {}},
    {"name": "get_pet"},
    {"name": "list_pets"},
    {"name": "list_pets", "arguments": {}},
    {"name": "list_pets", "arguments": None},
    {"name": "list_pets", "arguments": []},
    {"name": "create_pet", "arguments": {"body": {"name": "Ünï"}}},
    {"name": "delete_pet", "arguments": {"id": 1}},
    {"name": "no_such_tool", "arguments": {}},
    {"name": "", "arguments": {}},
    {"name": 7, "arguments": {}},
    {"name": "list_pets", "arguments": {}, "extra": 1},
)


@pytest.fixture
def acme(common_acme: Acme) -> Acme:
    """One tenant for the tests that change nothing of it."""
    common_acme.upstream.reset()
    return common_acme


async def _session(acme: Acme, version: str) -> str:
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = await acme.gateway.http.post(
        "/t/acme/mcp",
        json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        headers={"authorization": f"Bearer {acme.key}", "accept": ACCEPT},
    )
    return answer.headers["mcp-session-id"]


async def _send(acme: Acme, params: dict[str, Any], session: str | None, request_id: int | str) -> httpx.Response:
    headers = {"authorization": f"Bearer {acme.key}", "accept": ACCEPT}
    if session is None:
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": str(params["name"])}
    else:
        headers["mcp-session-id"] = session
    body = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
    return await acme.gateway.http.post("/t/acme/mcp", json=body, headers=headers)


async def _both(
    acme: Acme, params: dict[str, Any], session: str | None, request_id: int | str = 1
) -> tuple[httpx.Response, httpx.Response]:
    """The answers of the short and of the long way."""
    meta = META if session is None else {"progressToken": "p"}
    plain, odd = {**params, "_meta": meta}, {**params, "_meta": {**meta, **ODD}}
    return await _send(acme, plain, session, request_id), await _send(acme, odd, session, request_id)


def _comparable(answer: httpx.Response) -> tuple[object, ...]:
    """Equal parts of a response: all but the correlation id."""
    text = answer.text.replace(answer.headers["x-request-id"], "ID")
    value: Any = httpx.Response(200, content=text).json()
    return answer.status_code, answer.headers["content-type"], value


def _judged(answer: httpx.Response, version: str | None) -> None:
    """The SDK would have sent the result as it is."""
    result = answer.json().get("result")
    if result is not None:
        assert serialize_server_result("tools/call", version or MODERN, result) == result
        assert ("io.modelcontextprotocol/serverInfo" in result.get("_meta", {})) == (version is None)


@pytest.mark.parametrize("version", [None, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_both_paths_agree_on_every_upstream_answer(acme: Acme, version: str | None) -> None:
    """Ours: there is one judge of results, whichever way a request takes (CAL-1, SRV-1)."""
    session = None if version is None else await _session(acme, version)
    for status, content_type, body in ANSWERS:
        acme.upstream.status, acme.upstream.content_type, acme.upstream.body = status, content_type, body
        short, long = await _both(acme, {"name": "get_pet", "arguments": {"id": 7}}, session)

        assert _comparable(short) == _comparable(long), (status, content_type, body)
        _judged(long, version)
    sent = [3 if status in {502, 503, 504} else 1 for status, _, _ in ANSWERS]  # what is away is asked again
    assert len(acme.upstream.seen) == 2 * sum(sent)


@pytest.mark.parametrize("version", [None, "2025-11-25"])
async def test_both_paths_agree_on_every_call(acme: Acme, version: str | None) -> None:
    """Ours: errors are the SDK's or read like them, and nothing is sent twice (CAL-2, CAL-3)."""
    session = None if version is None else await _session(acme, version)
    for request_id, params in enumerate(CALLS):
        seen = len(acme.upstream.seen)
        short, long = await _both(acme, params, session, request_id if request_id % 2 else f"r-{request_id}")

        assert _comparable(short) == _comparable(long), params
        _judged(long, version)
        assert (len(acme.upstream.seen) - seen) in {0, 2}, params


@pytest.mark.parametrize("version", [None, "2025-11-25"])
async def test_both_paths_agree_on_a_refusal(own_acme: Acme, version: str | None) -> None:
    """Ours: a denied level and a full limit read alike (SAF-2, TEN-3)."""
    session = None if version is None else await _session(own_acme, version)
    policy = {"dangerous": "deny", "limits": {"calls_per_second": 0.001, "burst": 2}}
    (await own_acme.gateway.admin.patch("/tenants/acme/policy", json=policy)).raise_for_status()

    denied = await _both(own_acme, {"name": "delete_pet", "arguments": {"id": 1}}, session)
    limited = await _both(own_acme, {"name": "list_pets"}, session)

    assert _comparable(denied[0]) == _comparable(denied[1])
    errors = [answer.json()["error"] for answer in limited]
    for error in errors:
        assert error["data"].pop("retry_after_s") > 0
        del error["data"]["correlation_id"]
    assert errors[0] == errors[1]
    assert limited[0].status_code == limited[1].status_code


FOREIGN: tuple[dict[str, Any], ...] = (
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"},
    {"traceparent": {"not": "a trace"}},
    {"com.example/user": {"deep": [{"er": None}]}, "": 1},
    {"progressToken": 7, "com.example/x": 1},
    {"progressToken": "p"},
)
OWN: tuple[dict[str, Any], ...] = (
    {"progress_token": []},
    {"dev.mcp/x": 1},
    {"io.modelcontextprotocol/relatedTask": {"taskId": "1"}},
)


@pytest.mark.parametrize("version", [None, "2025-11-25"])
async def test_foreign_members_of_meta_change_neither_answer_nor_path(
    acme: Acme, version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: traces and vendors' members cost nothing, the protocol's own are for the SDK to judge (CAL-1, SRV-1)."""
    session = None if version is None else await _session(acme, version)
    asked: list[str] = []

    def counted(
        ctx: SdkContext, params: CallToolRequestParams, spawn: Spawn, *, talks: bool
    ) -> AbstractAsyncContextManager[Peer, None]:
        asked.append(ctx.method)
        return peer_for_request(ctx, params, spawn, talks=talks)

    monkeypatch.setattr("gateway.protocol.methods.tools.peer_for_request", counted)  # where the SDK hands the call back
    levels = ({"io.modelcontextprotocol/logLevel": "info"},) if session is None else ()
    bare, named = (META, {}) if session is None else ({}, {"progressToken": "p"})
    call: dict[str, Any] = {"name": "get_pet", "arguments": {"id": 7}}
    for members in (*FOREIGN, *levels):
        seen, before = len(acme.upstream.seen), len(asked)
        short = await _send(acme, {**call, "_meta": {**bare, **members}}, session, 1)
        way = asked[before:]
        long = await _send(acme, {**call, "_meta": {**bare, **named, **members, **ODD}}, session, 1)

        assert (way, asked[before:]) == ([], ["tools/call"]), members
        assert _comparable(short) == _comparable(long), members
        assert len(acme.upstream.seen) - seen == 2
    for members in OWN:
        before = len(asked)
        await _send(acme, {**call, "_meta": {**bare, **members}}, session, 1)
        assert asked[before:] == ["tools/call"], members


@pytest.mark.parametrize("member", [{"io.modelcontextprotocol/logLevel": "loud"}, {"progressToken": 1.5}])
async def test_members_of_the_protocol_are_judged_also_where_unused(acme: Acme, member: dict[str, Any]) -> None:
    """MCP: a log level is one of eight words and a token a string or an integer, in each place (SRV-1)."""
    params = {"name": "get_pet", "arguments": {"id": 7}, "_meta": {**META, **member}}

    refused = await _send(acme, params, None, 1)

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32602)
    assert acme.upstream.seen == []


@pytest.mark.parametrize(
    "change",
    [
        {"mcp-name": "list_pets"},
        {"mcp-method": "tools/list"},
        {"mcp-protocol-version": "2099-01-01"},
        {"mcp-name": ""},
    ],
)
async def test_headers_that_disagree_with_a_plain_body_are_refused(acme: Acme, change: dict[str, str]) -> None:
    """MCP: the mirrored headers are compared with the body, on each path of a request (SRV-1, TEN-5)."""
    headers = {
        "authorization": f"Bearer {acme.key}",
        "accept": ACCEPT,
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "get_pet",
        **change,
    }
    params = {"name": "get_pet", "arguments": {"id": 7}, "_meta": META}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    answer = await acme.gateway.http.post("/t/acme/mcp", json=body, headers=headers)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
    assert acme.upstream.seen == []


def test_only_the_plainest_form_is_recognised() -> None:
    """Ours: whatever the short way does not know to the last member goes the long way (CAL-1)."""
    plain: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "t"}}
    odd: tuple[dict[str, Any], ...] = (
        {"jsonrpc": "1.0"},
        {"id": None},
        {"id": True},
        {"id": 1.5},
        {"method": "tools/list"},
        {"params": []},
        {"params": {"name": 1}},
        {"params": {"name": "t", "task": {}}},
        {"params": {"name": "t", "arguments": [1]}},
        {"more": 1},
    )

    assert is_candidate(plain)
    assert not any(is_candidate({**plain, **change}) for change in odd)
