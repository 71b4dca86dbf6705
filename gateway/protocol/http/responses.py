"""JSON-RPC messages as HTTP responses, and checks of a request's headers."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec
from mcp_types import INVALID_REQUEST
from starlette.types import Receive, Scope, Send

from gateway.errors import GatewayError
from gateway.protocol.errors import code_of, details_of
from gateway.web.headers import headers_of

JSON = b"application/json"
Headers = tuple[tuple[bytes, bytes], ...]

_JUDGED: Final = 64
"""Number of header values whose evaluation is cached; small, because the values may be long."""

_NO_CONTENT: Final = 204
_WEIGHT = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


async def send_response(send: Send, status: int, body: bytes = b"", *, headers: Headers = ()) -> None:
    """Send one whole HTTP response, as JSON if it has a body."""
    length = ((b"content-length", str(len(body)).encode()),) if status != _NO_CONTENT else ()  # RFC 9110 §8.6
    kind = ((b"content-type", JSON),) if body else ()
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *length, *headers]})
    await send({"type": "http.response.body", "body": body})


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
    """The id for an error response to this message; None if it is no request or has no valid id."""
    named = message.get("id") if "method" in message else None
    return named if isinstance(named, str | int) and not isinstance(named, bool) else None


def header(scope: Scope, name: bytes) -> str | None:
    """The first value of the header with this (lower-case) name."""
    found = headers_of(scope).get(name)
    return None if found is None else found.decode("latin-1")


def accepts(scope: Scope, kind: str) -> bool:
    """True if the client accepts this media type; without an Accept header it accepts any (RFC 9110 §12.5.1)."""
    accept = headers_of(scope).get(b"accept")
    return accept is None or _takes(accept, kind)


@lru_cache(_JUDGED)
def _takes(detail: bytes, kind: str) -> bool:
    accept = detail.decode("latin-1")
    names = (kind, f"{kind.partition('/')[0]}/*", "*/*")
    if ";" not in accept:
        return any(part.strip().lower() in names for part in accept.split(","))
    ranked = _ranked(accept)
    return next((ranked[name][0] < 0 for name in names if name in ranked), False)  # the most specific name decides


def prefers(scope: Scope, kind: str, *, to: str) -> bool:
    """True if the header prefers one media type to another: by weight, then by order. Wildcards do not count."""
    accept = headers_of(scope).get(b"accept")
    return accept is not None and _prefers(accept, kind, to)


@lru_cache(_JUDGED)
def _prefers(detail: bytes, kind: str, to: str) -> bool:
    ranked = _ranked(detail.decode("latin-1"))
    return kind in ranked and (to not in ranked or ranked[kind] < ranked[to])


def _ranked(accept: str) -> Mapping[str, tuple[float, int]]:
    """The media types of an Accept header, with negated weight and position; a weight of 0 is a refusal."""
    ranked: dict[str, tuple[float, int]] = {}
    for place, part in enumerate(accept.split(",")):
        named, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weights = [parameter[2:] for parameter in parameters if parameter.startswith("q=")]
        ranked.setdefault(named, (-_weight(weights[0] if weights else "1"), place))
    return ranked


def is_json(scope: Scope) -> bool:
    """True if Content-Type declares the body as JSON."""
    declared = headers_of(scope).get(b"content-type")
    return declared == JSON or (declared is not None and declared.partition(b";")[0].strip().lower() == JSON)


def is_encoded(scope: Scope) -> bool:
    """True if Content-Encoding declares the body compressed or otherwise encoded, or is repeated."""
    fields = headers_of(scope)
    coding = fields.get(b"content-encoding", b"")
    return b"content-encoding" in fields.repeated or coding.strip().lower() not in {b"", b"identity"}


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns a body already read, then continues with the original."""
    pending: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Any:
        return pending.pop() if pending else await receive()

    return replayed


def _weight(text: str) -> float:
    """Parse a qvalue (RFC 9110 §12.4.2); an invalid one counts as absent."""
    return float(text) if _WEIGHT.fullmatch(text) else 1.0
