"""Validation of the envelope and headers of 2026-07-28, and the refusals.

The SDK validates everything except repeated headers. Each refusal contains the gateway's `data.code` and
`data.correlation_id`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    decode_header_value,
    validate_mcp_param_headers,
)
from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers

from gateway.errors import BadInput
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import error_message, id_of
from gateway.protocol.request_context import RequestContext

_ROUTING: Final[Mapping[bytes, str]] = {
    name.encode(): name for name in (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)
}
"""The headers that repeat parts of the body."""

_VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.encode()
_SERVED: Final = [*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS)]
_MAX_ECHOED: Final = 64
_OF_TASKS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Methods whose header `Mcp-Name` repeats `params.taskId`; the SDK knows only the methods of the specification."""


def read_request(message: dict[str, Any]) -> JSONRPCRequest | None:
    """The message as the SDK's request type, for any method; None if it is not a request."""
    try:
        return JSONRPCRequest.model_validate(message, by_name=False)
    except ValidationError:
        return None


def envelope_error(message: Mapping[str, Any], request: McpRequest, context: RequestContext) -> bytes | None:
    """The refusal of a request whose envelope or headers are invalid or differ from each other; None otherwise."""
    for name in request.headers.repeated:
        if name in _ROUTING:  # guard: routing-header-once
            return _refusal(HEADER_MISMATCH, f"{_ROUTING[name]} header appears more than once", None, context, message)
    text = {known: request.headers.get(name) for name, known in _ROUTING.items()}
    headers = {known: value.decode("latin-1") for known, value in text.items() if value is not None}
    verdict = classify_inbound_request(message, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        return _refused(verdict, context, message)
    named = decode_header_value(headers.get(MCP_NAME_HEADER)) if message["method"] in _OF_TASKS else None
    if message["method"] in _OF_TASKS and named != message["params"].get("taskId"):  # guard: task-id-mirrored
        reason = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        return _refusal(HEADER_MISMATCH, reason, None, context, message)
    return None


def param_header_error(message: JSONRPCRequest, request: McpRequest, context: RequestContext) -> bytes | None:
    """The refusal of a call whose `Mcp-Param-*` headers differ from its arguments; None otherwise."""
    params = message.params or {}
    name, given = params.get("name"), params.get("arguments")
    if message.method != "tools/call" or not isinstance(name, str) or not isinstance(given, dict | None):
        return None
    schema = context.registry.mirrored_schema(name)
    if schema is None:
        return None
    arguments: Mapping[str, Any] = cast("dict[str, Any] | None", given) or {}
    verdict = validate_mcp_param_headers(schema, arguments, Headers(raw=request.headers.raw))
    return None if verdict is None else _refused(verdict, context, message.model_dump())  # guard: mirrored-argument


def unsupported_version_error(
    request: McpRequest, context: RequestContext, message: Mapping[str, Any] = MappingProxyType({})
) -> bytes:
    """The refusal of a header with an unknown revision, for a message without an envelope."""
    shown = (request.version or "")[:_MAX_ECHOED]
    data = {"supported": _SERVED, "requested": shown}
    return _refusal(UNSUPPORTED_PROTOCOL_VERSION, f"Unsupported protocol version: {shown}", data, context, message)


def version_header_error(request: McpRequest, context: RequestContext) -> bytes | None:
    """The refusal of several version headers with different values, because a proxy could read another one; None
    otherwise.
    """
    if _VERSION not in request.headers.repeated:
        return None
    text = {value for name, value in request.headers.raw if name == _VERSION}
    if len(text) == 1:
        return None
    reason = f"{MCP_PROTOCOL_VERSION_HEADER} header appears more than once, with different values; send one"
    return _refusal(HEADER_MISMATCH, reason, None, context, {})


def _refused(verdict: InboundLadderRejection, context: RequestContext, message: Mapping[str, Any]) -> bytes:
    return _refusal(verdict.code, verdict.message, verdict.data, context, message)


def _refusal(
    code: int, text: str, details: Mapping[str, Any] | None, context: RequestContext, message: Mapping[str, Any]
) -> bytes:
    data = {**(details or {}), "code": BadInput.code, "correlation_id": context.correlation_id}
    return error_message(code, text, data=data, request_id=id_of(message))
