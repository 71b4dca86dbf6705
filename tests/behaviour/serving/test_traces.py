"""Traces of calls, as a collector receives them: server and duration, and no content."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from tests.support.documents import secured
from tests.support.gateway import ACCEPT, META, MODERN, OPERATOR_KEY, RunningGateway, running_gateway
from tests.support.handshake import open_session
from tests.support.upstream import RecordingUpstream, recording_upstream

_TRACE, _PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
_TRACEPARENT = f"00-{_TRACE}-{_PARENT}-01"
_OTHER = "00-11111111111111111111111111111111-2222222222222222-01"
_CALL: dict[str, Any] = {"name": "find_thing", "arguments": {"id": "canary-path", "q": "canary-query"}}


@dataclass(slots=True, kw_only=True)
class Collected:
    """Spans at the collector; complete once the gateway has closed."""

    collector: RecordingUpstream
    upstream: RecordingUpstream
    key: str = ""

    @property
    def spans(self) -> Sequence[Span]:
        """Every span, in the order of their beginnings."""
        found: list[Span] = []
        for seen in self.collector.seen:
            sent = ExportTraceServiceRequest.FromString(seen.body)
            found += [one for part in sent.resource_spans for scope in part.scope_spans for one in scope.spans]
        return sorted(found, key=lambda one: one.start_time_unix_nano)

    def named(self, name: str) -> Span:
        """The one span of this name."""
        (found,) = (span for span in self.spans if span.name == name)
        return found


def _document(url: str) -> dict[str, Any]:
    document = secured(url)
    names = (("id", "path"), ("q", "query"))
    document["paths"]["/things/{id}"] = {
        "get": {
            "operationId": "find_thing",
            "parameters": [
                {"name": name, "in": place, "required": True, "schema": {"type": "string"}} for name, place in names
            ],
            "responses": {"200": {"description": "ok"}},
        }
    }
    return document


@pytest.fixture
async def collected() -> AsyncGenerator[Collected]:
    """A collector and an upstream."""
    async with recording_upstream() as collector, recording_upstream() as upstream:
        upstream.body = b'{"answer":"canary-answer"}'
        yield Collected(collector=collector, upstream=upstream)


@asynccontextmanager
async def _running(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, **settings: Any
) -> AsyncGenerator[RunningGateway]:
    """A gateway that exports, with a tenant, a tool and a key; leaving it sends what waits."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collected.collector.url)
    allowed = [collected.upstream.authority]
    async with running_gateway(database_url, redis_url, egress_allow=allowed, **settings) as gateway:
        await gateway.create_tenant("acme")
        document = _document(collected.upstream.url)
        await gateway.import_document("acme", document, credentials={"token": "canary-credential"})
        collected.key = await gateway.create_key("acme")
        yield gateway


def _attributes(span: Span) -> dict[str, Any]:
    return {one.key: one.value.string_value or one.value.int_value for one in span.attributes}


async def _call_with_trace(gateway: RunningGateway, key: str, **meta: object) -> httpx.Response:
    """A call whose envelope names a trace, and whose header names another."""
    headers = {"authorization": f"Bearer {key}", "accept": ACCEPT, "mcp-protocol-version": MODERN}
    headers |= {"mcp-method": "tools/call", "mcp-name": "find_thing", "traceparent": _OTHER}
    params = {**_CALL, "_meta": {**META, **meta}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return await gateway.http.post("/t/acme/mcp", json=body, headers=headers)


async def test_a_call_is_a_span_with_its_upstreams_request_inside(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: method, tool, tenant, status and time by the conventions for MCP and HTTP; both eras alike (SRV-6)."""
    async with _running(collected, database_url, redis_url, monkeypatch) as gateway:
        answer = await gateway.rpc("acme", collected.key, "tools/call", _CALL)
        session = await open_session(gateway, "acme", collected.key)
        await session.send("tools/call", _CALL)
    modern, old = (span for span in collected.spans if span.name == "tools/call find_thing")
    asked = [span for span in collected.spans if span.kind == Span.SPAN_KIND_CLIENT]

    assert answer.status_code == 200, answer.text
    assert {span.name for span in collected.spans} == {"tools/call find_thing", "initialize", "GET"}
    assert _attributes(modern) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": MODERN,
        "jsonrpc.request.id": "1",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find_thing",
        "gateway.tenant": "acme",
        "gateway.correlation_id": answer.headers["x-request-id"],
        "http.response.status_code": 200,
    }
    assert _attributes(old)["mcp.session.id"] == session.id
    assert [(span.trace_id, span.parent_span_id) for span in asked] == [
        (span.trace_id, span.span_id) for span in (modern, old)
    ]
    assert _attributes(asked[0]) == {
        "http.request.method": "GET",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": collected.upstream.port,
        "http.response.status_code": 200,
    }
    assert {modern.kind, old.kind} == {Span.SPAN_KIND_SERVER}
    assert modern.trace_id != old.trace_id


async def test_no_content_is_in_a_trace(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: no argument, result, credential or key leaves with a span, also when a call fails (TEN-4, SAF-4)."""
    async with _running(collected, database_url, redis_url, monkeypatch) as gateway:
        for arguments in (_CALL["arguments"], {"id": {"canary": 1}, "q": "canary-q"}, {"canary-name": "canary"}):
            await gateway.rpc("acme", collected.key, "tools/call", {"name": "find_thing", "arguments": arguments})
        await _call_with_trace(gateway, collected.key, **{"example/canary-meta": "canary"})
        await gateway.rpc("acme", collected.key, "resources/read", {"uri": "file:///canary"})
        collected.upstream.status = 500
        await gateway.rpc("acme", collected.key, "tools/call", _CALL)
    sent = b"".join(seen.body for seen in collected.collector.seen)

    assert len(collected.spans) >= 6
    assert b"find_thing" in sent
    for secret in (b"canary", collected.key.encode(), OPERATOR_KEY.encode(), collected.key[-20:].encode()):
        assert secret not in sent


async def test_a_failed_span_has_one_stable_code(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a span's error is our stable code, a tool's error is marked, the upstream's status is an attribute
    (SRV-6).
    """
    async with _running(collected, database_url, redis_url, monkeypatch) as gateway:
        await gateway.rpc("acme", collected.key, "tools/call", {"name": "no_such", "arguments": {}})
        session = await open_session(gateway, "acme", collected.key)
        await session.rpc("tools/call", {"name": "not_there", "arguments": {}})
        collected.upstream.status = 503
        await gateway.rpc("acme", collected.key, "tools/call", _CALL)
    failed = [collected.named(f"tools/call {name}") for name in ("no_such", "not_there", "find_thing")]
    asked = [span for span in collected.spans if span.name == "GET"]

    assert [_attributes(span)["error.type"] for span in failed] == ["not_found", "not_found", "tool_error"]
    assert _attributes(failed[0])["rpc.response.status_code"] == "-32602"
    assert {_attributes(span)["error.type"] for span in asked} == {"503"}
    assert {span.status.code for span in (*failed, *asked)} == {Status.STATUS_CODE_ERROR}
    assert {span.status.message for span in collected.spans} == {""}


async def test_a_clients_trace_is_continued_and_stays_here(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: `_meta` counts before the header; upstreams learn of no trace unless the operator wants that (SRV-6)."""
    async with _running(collected, database_url, redis_url, monkeypatch) as gateway:
        await _call_with_trace(gateway, collected.key, traceparent=_TRACEPARENT)
        await gateway.rpc("acme", collected.key, "tools/call", _CALL, traceparent=_OTHER)
        for broken in (7, "00-0-0-00", "x" * 5000, None):
            await _call_with_trace(gateway, collected.key, traceparent=broken)
    served = [span for span in collected.spans if span.kind == Span.SPAN_KIND_SERVER]

    assert (served[0].trace_id.hex(), served[0].parent_span_id.hex()) == (_TRACE, _PARENT)
    assert (served[1].trace_id.hex(), served[1].parent_span_id.hex()) == ("1" * 32, "2" * 16)
    assert {span.parent_span_id for span in served[2:]} == {b""}
    assert len(served) == 6
    for seen in collected.upstream.seen:
        assert seen.header("traceparent") is None


async def test_trace_context_is_forwarded_and_joined_by_settings(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: both directions are settings (SRV-6)."""
    wanted = {"trace_forward": True, "trace_join": False}
    async with _running(collected, database_url, redis_url, monkeypatch, **wanted) as gateway:
        await _call_with_trace(gateway, collected.key, traceparent=_TRACEPARENT)
    served, asked = collected.named("tools/call find_thing"), collected.named("GET")

    assert served.trace_id.hex() not in {_TRACE, "1" * 32}
    assert served.parent_span_id == b""
    notified = collected.upstream.seen[-1].header("traceparent") or ""
    assert notified.split("-")[:3] == ["00", asked.trace_id.hex(), asked.span_id.hex()]


async def test_a_collector_that_is_away_costs_no_call_and_no_restart(
    collected: Collected, database_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: traces are lost before anything else is (SRV-3)."""
    collected.collector.status = 503
    with anyio.fail_after(180):
        async with _running(collected, database_url, redis_url, monkeypatch) as gateway:
            answer = await gateway.rpc("acme", collected.key, "tools/call", _CALL)

    assert answer.status_code == 200
