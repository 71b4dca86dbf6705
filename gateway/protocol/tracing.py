"""The span of one MCP message: its method, the tool's name, and the outcome.

A span starts after authentication. The outcome is read from the sent response, so the fast path and the SDK are traced
in the same way. The span contains the status and error codes of the response, not its content.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, cast

import orjson
from msgspec import structs
from opentelemetry.trace import Span
from starlette.types import Message, Send

from gateway.protocol.http.request import McpRequest
from gateway.protocol.limits import MAX_ATTRIBUTE_LENGTH, MAX_SCANNED_BODY_BYTES
from gateway.protocol.request_context import RequestContext
from gateway.telemetry.traces import TRACE_HEADERS, Traces, mark_failed

_NAME_PARAMS: Final[Mapping[str, str]] = {"tools/call": "gen_ai.tool.name", "prompts/get": "gen_ai.prompt.name"}
_HEADERS: Final[Mapping[bytes, str]] = {
    b"mcp-session-id": "mcp.session.id",
    b"mcp-protocol-version": "mcp.protocol.version",
}


@contextmanager
def traced(
    traces: Traces, request: McpRequest, message: Mapping[str, Any], context: RequestContext
) -> Generator[McpRequest]:
    """Open a span around the message; yields the request with a `send` that records the outcome of the response."""
    name, attributes = _describe(request, message, context)
    with traces.message_span(name, attributes, _trace_context(request, message)) as span:
        yield request if span is None else structs.replace(request, send=_observe_send(request.send, span))


def _describe(
    request: McpRequest, message: Mapping[str, Any], context: RequestContext
) -> tuple[str, dict[str, str | int]]:
    """The span's name and attributes, by the semantic conventions for MCP."""
    method = _text(message.get("method")) or "response"
    attributes: dict[str, str | int] = {
        "mcp.method.name": method,
        "gateway.tenant": context.principal.slug,
        "gateway.correlation_id": context.correlation_id,
    }
    for key, value in request.headers.raw:
        if key in _HEADERS:
            attributes[_HEADERS[key]] = value.decode("latin-1")[:MAX_ATTRIBUTE_LENGTH]
    request_id = message.get("id")
    if isinstance(request_id, str | int):
        attributes["jsonrpc.request.id"] = str(request_id)[:MAX_ATTRIBUTE_LENGTH]
    if method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    primitive_name = _text(_member(message, "params").get("name")) if method in _NAME_PARAMS else ""
    if not primitive_name:
        return method, attributes
    attributes[_NAME_PARAMS[method]] = primitive_name
    return f"{method} {primitive_name}", attributes


def _trace_context(request: McpRequest, message: Mapping[str, Any]) -> Mapping[str, object]:
    """The client's trace context: from `_meta` if it contains a `traceparent`, otherwise from the headers."""
    meta = _member(_member(message, "params"), "_meta")
    if TRACE_HEADERS[0] in meta:
        return meta
    header_names = {name.encode(): name for name in TRACE_HEADERS}
    return {header_names[key]: value.decode("latin-1") for key, value in request.headers.raw if key in header_names}


def _observe_send(send: Send, span: Span) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= 500:  # a fault of the server, not of the client
                mark_failed(span, str(message["status"]))
        elif message["type"] == "http.response.body":
            _record_errors(span, message.get("body", b""))
        await send(message)

    return sending


def _record_errors(span: Span, body: bytes) -> None:
    """Mark the span as failed if a part of the response contains an error."""
    if len(body) > MAX_SCANNED_BODY_BYTES:
        return
    if b'"error"' not in body and b'"isError":true' not in body.replace(b" ", b""):
        return
    for line in body.split(b"\n"):
        try:
            message: object = orjson.loads(line.removeprefix(b"data:"))
        except orjson.JSONDecodeError:
            continue
        if not isinstance(message, dict):
            continue
        members = cast(dict[str, Any], message)
        error = _member(members, "error")
        if error:
            code = str(error.get("code"))
            gateway_error = _text(_member(error, "data").get("code"))
            mark_failed(span, gateway_error or code, **{"rpc.response.status_code": code})
        elif _member(members, "result").get("isError") is True:
            mark_failed(span, "tool_error")


def _member(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return value[:MAX_ATTRIBUTE_LENGTH] if isinstance(value, str) else ""
