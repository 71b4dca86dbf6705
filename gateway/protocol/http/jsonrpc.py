"""JSON-RPC messages from server to client, as encoded bytes."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from mcp_types import INTERNAL_ERROR

from gateway.domain.primitives import Family

CANCELLED: Final = -32800
"""The error code of a request that was cancelled."""

_NOTICES: Final[Mapping[Family, str]] = {
    Family.TOOL: "notifications/tools/list_changed",
    Family.RESOURCE: "notifications/resources/list_changed",
    Family.PROMPT: "notifications/prompts/list_changed",
}
_encode = msgspec.json.encode


def request_id(value: str | int) -> bytes:
    """Encode a request's id as JSON, which distinguishes 7 from "7"."""
    return _encode(value)


def notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    """Encode a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def request(name: str, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Encode a request to the client."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": name, "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def list_changed(family: Family, meta: Mapping[str, Any] | None = None) -> bytes:
    """Encode the notification of a changed list."""
    return notification(_NOTICES[family], None if meta is None else {"_meta": meta})


def resource_updated(uri: str, meta: Mapping[str, Any] | None = None) -> bytes:
    """Encode the notification of an updated resource."""
    return notification("notifications/resources/updated", {"uri": uri} | ({} if meta is None else {"_meta": meta}))


def error_response(request: bytes, code: int, message: str, *, kind: str, correlation_id: str | None = None) -> bytes:
    """Encode the error response to a request, given its id as JSON."""
    data = {"code": kind} if correlation_id is None else {"code": kind, "correlation_id": correlation_id}
    error = {"code": code, "message": message, "data": data}
    return b'{"jsonrpc":"2.0","id":' + request + b',"error":' + _encode(error) + b"}"


def replica_lost_error(request: bytes) -> bytes:
    """The error response to a request that ended without a response, for example because its replica has crashed."""
    text = "the replica that ran this request has stopped; its outcome is unknown"
    return error_response(request, INTERNAL_ERROR, text, kind="call.replica_lost")


def expired_error(request: bytes) -> bytes:
    """The error response to a request whose response has expired or could not be stored."""
    return error_response(
        request, INTERNAL_ERROR, "the response to this request has expired", kind="call.answer_expired"
    )
