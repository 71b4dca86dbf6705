"""Complete JSON-RPC responses: rendered members, with the members that the protocol revision adds."""

from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from mcp_types import SERVER_INFO_META_KEY, ErrorData
from pydantic_core import to_json

from gateway.protocol.http.request import McpRequest
from gateway.protocol.http.responses import Body
from gateway.protocol.server_name import NAME
from gateway.telemetry.distribution import VERSION

STRUCTURED = frozenset({"2025-06-18", "2025-11-25"})
"""Handshake revisions whose results have structured content; the SDK shapes the results of older revisions."""

_encode = msgspec.json.encode
_SERVER = b'"' + SERVER_INFO_META_KEY.encode() + b'":' + _encode({"name": NAME, "version": VERSION})
_COMPLETE = b',"resultType":"complete"'
_STRUCTURED = b',"structuredContent":'
_IS_ERROR = b',"isError":'


class JsonRpcReply(msgspec.Struct, frozen=True):
    """A complete response: HTTP status and JSON-RPC body."""

    status: int
    body: Body

    def send(self, request: McpRequest) -> Awaitable[None]:
        """Send the response to the client of the request."""
        return request.respond(self.status, self.body)


def tool_result(request_id: int | str, members: bytes, *, is_modern: bool) -> JsonRpcReply:
    """The response to a call, made of the members that the call pipeline rendered.

    The pipeline writes `_meta` last if there is one, and `isError` last otherwise.
    """
    if not is_modern:
        return _result(request_id, _without_bare_structure(members))
    if members.endswith(b"}"):
        return _result(request_id, b"".join((members[:-1], b",", _SERVER, b"}", _COMPLETE)))
    return _result(request_id, b"".join((members, _COMPLETE, b',"_meta":{', _SERVER, b"}")))


def sdk_result(request_id: int | str, result: Mapping[str, Any]) -> JsonRpcReply:
    """The response with a result that the SDK has built."""
    return JsonRpcReply(200, b"".join((_head(request_id), b',"result":', to_json(result, inf_nan_mode="null"), b"}")))


def list_result(request_id: int | str, members: bytes, *, is_modern: bool) -> JsonRpcReply:
    """The response to a list request, made of rendered members; all responses share their bytes."""
    end = b"".join((b',"_meta":{', _SERVER, b"}}}")) if is_modern else b"}}"
    return JsonRpcReply(200, (_head(request_id) + b',"result":{', members, end))


def error_result(request_id: int | str, error: ErrorData, *, is_modern: bool) -> JsonRpcReply:
    """The error response to a request; only in 2026-07-28 does the error code determine the HTTP status."""
    message = error.model_dump(exclude_none=True)
    status = ERROR_CODE_HTTP_STATUS.get(error.code, 200) if is_modern else 200
    return JsonRpcReply(status, b"".join((_head(request_id), b',"error":', _encode(message), b"}")))


def _result(request_id: int | str, members: bytes) -> JsonRpcReply:
    return JsonRpcReply(200, b"".join((_head(request_id), b',"result":{', members, b"}}")))


def _head(request_id: int | str) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + _encode(request_id)


def _without_bare_structure(members: bytes) -> bytes:
    """Remove structured content that is not an object: before 2026-07-28 only the text may contain it.

    Quotes inside the text block are escaped, so the first match is the member itself.
    """
    start = members.find(_STRUCTURED)
    if start < 0 or members[start + len(_STRUCTURED) : start + len(_STRUCTURED) + 1] == b"{":
        return members
    return members[:start] + members[members.rfind(_IS_ERROR) :]
