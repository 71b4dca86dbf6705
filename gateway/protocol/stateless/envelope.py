"""Validation of the envelope and headers of requests of revision 2026-07-28; builds the error responses.

The SDK validates the envelope. This module adds checks of repeated headers, and of `Mcp-Name` in task methods. Every
error response contains the gateway's `data.code` and `data.correlation_id`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PARAM_HEADER_PREFIX,
    MCP_PROTOCOL_VERSION_HEADER,
    InboundLadderRejection,
    classify_inbound_request,
    decode_header_value,
    validate_mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION, JSONRPCRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.datastructures import Headers

from gateway.errors import BadInput
from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import error_message, id_of
from gateway.protocol.request_context import RequestContext
from gateway.protocol.stateless.limits import MAX_VERSION_ECHO

_ROUTING: Final[Mapping[bytes, str]] = {
    name.encode(): name for name in (MCP_PROTOCOL_VERSION_HEADER, MCP_METHOD_HEADER, MCP_NAME_HEADER)
}
"""The headers whose values mirror parts of the body."""

_VERSION: Final = MCP_PROTOCOL_VERSION_HEADER.encode()
_SUPPORTED_VERSIONS: Final = [*MODERN_PROTOCOL_VERSIONS, *reversed(HANDSHAKE_PROTOCOL_VERSIONS)]
_OF_TASKS: Final = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})
"""Methods whose `Mcp-Name` header mirrors `params.taskId`; the SDK validates it only for methods of the core
specification.
"""


def read_request(message: dict[str, Any]) -> JSONRPCRequest | None:
    """The message parsed as the SDK's request type; None if it is not a request. The method may be unknown."""
    try:
        return JSONRPCRequest.model_validate(message, by_name=False)
    except ValidationError:
        return None


def envelope_error(message: Mapping[str, Any], request: McpRequest, context: RequestContext) -> bytes | None:
    """Error response if envelope or headers are invalid, or the headers do not match the body; otherwise None."""
    for name in request.headers.repeated:
        if name in _ROUTING:  # guard: routing-header-once
            return _error_response(
                HEADER_MISMATCH, f"{_ROUTING[name]} header appears more than once", None, context, message=message
            )
    raw_headers = {known: request.headers.get(name) for name, known in _ROUTING.items()}
    headers = {known: value.decode("latin-1") for known, value in raw_headers.items() if value is not None}
    verdict = classify_inbound_request(message, headers=headers)
    if isinstance(verdict, InboundLadderRejection):
        return _refused(verdict, context, message)
    named = decode_header_value(headers.get(MCP_NAME_HEADER)) if message["method"] in _OF_TASKS else None
    if message["method"] in _OF_TASKS and named != message["params"].get("taskId"):  # guard: task-id-mirrored
        reason = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        return _error_response(HEADER_MISMATCH, reason, None, context, message=message)
    return None


def param_header_error(message: JSONRPCRequest, request: McpRequest, context: RequestContext) -> bytes | None:
    """Error response if `Mcp-Param-*` headers do not match the arguments of the call; otherwise None."""
    params = message.params or {}
    name, raw_arguments = params.get("name"), params.get("arguments")
    if message.method != "tools/call" or not isinstance(name, str) or not isinstance(raw_arguments, dict | None):
        return None
    schema = context.registry.mirrored_schema(name)
    if schema is None:
        return None
    arguments: Mapping[str, Any] = cast("dict[str, Any] | None", raw_arguments) or {}
    verdict = _odd_characters(schema, request) or validate_mcp_param_headers(
        schema, arguments, Headers(raw=request.headers.raw)
    )
    return None if verdict is None else _refused(verdict, context, message.model_dump())  # guard: mirrored-argument


def _odd_characters(schema: Mapping[str, Any], request: McpRequest) -> InboundLadderRejection | None:
    """The refusal of a header whose value is not ASCII; the SDK would read its bytes as Latin-1."""
    known = {f"{MCP_PARAM_HEADER_PREFIX}{token}".lower(): token for token in x_mcp_header_map(schema).values()}
    for name, value in request.headers.raw:
        token = known.get(name.decode("latin-1").lower())
        if token is not None and not value.isascii():  # guard: mirrored-characters
            message = f"{MCP_PARAM_HEADER_PREFIX}{token} header contains invalid characters"
            return InboundLadderRejection(code=HEADER_MISMATCH, message=message)
    return None


def unsupported_version_error(
    request: McpRequest, context: RequestContext, message: Mapping[str, Any] = MappingProxyType({})
) -> bytes:
    """Error response to an unsupported `MCP-Protocol-Version` header, for a message without an envelope."""
    requested_version = (request.version or "")[:MAX_VERSION_ECHO]
    data = {"supported": _SUPPORTED_VERSIONS, "requested": requested_version}
    return _error_response(
        UNSUPPORTED_PROTOCOL_VERSION,
        f"Unsupported protocol version: {requested_version}",
        data,
        context,
        message=message,
    )


def version_header_error(request: McpRequest, context: RequestContext) -> bytes | None:
    """Error response if the version header is repeated with different values; otherwise None.

    A proxy and the gateway could use different values.
    """
    if _VERSION not in request.headers.repeated:
        return None
    values = {value for name, value in request.headers.raw if name == _VERSION}
    if len(values) == 1:
        return None
    reason = f"{MCP_PROTOCOL_VERSION_HEADER} header appears more than once, with different values; send one"
    return _error_response(HEADER_MISMATCH, reason, None, context, message={})


def _refused(verdict: InboundLadderRejection, context: RequestContext, message: Mapping[str, Any]) -> bytes:
    return _error_response(verdict.code, verdict.message, verdict.data, context, message=message)


def _error_response(
    code: int, text: str, details: Mapping[str, Any] | None, context: RequestContext, *, message: Mapping[str, Any]
) -> bytes:
    data = {**(details or {}), "code": BadInput.code, "correlation_id": context.correlation_id}
    return error_message(code, text, data=data, request_id=id_of(message))
