"""JSON-RPC messages as HTTP responses."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from mcp_types import INVALID_REQUEST
from starlette.types import Receive, Send

from gateway.errors import GatewayError
from gateway.protocol.errors import code_of, details_of

JSON = b"application/json"
Headers = tuple[tuple[bytes, bytes], ...]
Body = bytes | tuple[bytes, ...]
"""A body, or its parts."""

_NO_CONTENT: Final = 204


def joined(body: Body) -> bytes:
    """The bytes of a body."""
    return body if isinstance(body, bytes) else b"".join(body)


def size_of(body: Body) -> int:
    """The number of bytes of a body."""
    return len(body) if isinstance(body, bytes) else sum(map(len, body))


async def send_response(send: Send, status: int, body: Body = b"", *, headers: Headers = ()) -> None:
    """Send one complete HTTP response, as JSON if it has a body.

    Parts of a body are sent one by one, so that a part that many responses share is not copied for each slow client.
    """
    parts = (body,) if isinstance(body, bytes) else body
    size = size_of(parts)
    length = ((b"content-length", str(size).encode()),) if status != _NO_CONTENT else ()  # RFC 9110 §8.6
    kind = ((b"content-type", JSON),) if size else ()
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *headers]})
    for part in parts[:-1]:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": parts[-1]})


def error_message(code: int, message: str, *, data: Mapping[str, Any], request_id: str | int | None = None) -> bytes:
    """Encode a JSON-RPC error response."""
    error = {"code": code, "message": message, "data": data}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def refusal(
    error: GatewayError, correlation_id: str, *, code: int | None = None, request_id: str | int | None = None
) -> bytes:
    """Encode the JSON-RPC error response for a gateway error."""
    chosen = code_of(error) if code is None else code
    return error_message(chosen, error.message, data=details_of(error, correlation_id), request_id=request_id)


def invalid_request(message: str, correlation_id: str, *, request_id: str | int | None = None) -> bytes:
    """Encode the JSON-RPC error response for a message that is not a valid request of this protocol."""
    data = {"code": "input.invalid", "correlation_id": correlation_id}
    return error_message(INVALID_REQUEST, message, data=data, request_id=request_id)


def id_of(message: Mapping[str, Any]) -> str | int | None:
    """The id for an error response to this message; None if it is not a request or has no valid id."""
    named = message.get("id") if "method" in message else None
    return named if isinstance(named, str | int) and not isinstance(named, bool) else None


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body already read, then continues with the original."""
    pending: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Any:
        return pending.pop() if pending else await receive()

    return replayed
