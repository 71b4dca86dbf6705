"""Readers of request bodies, limited in size and time. `gateway.domain.json_text` parses JSON bodies."""

import time
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from gateway.errors import DocumentTooLarge, InvalidBody
from gateway.web.body_timeout import receive_within
from gateway.web.headers import headers_of


def declared_length(scope: MutableMapping[str, Any]) -> int | None:
    """Return the Content-Length; None if it is missing or not a number."""
    detail = headers_of(scope).get(b"content-length")
    return int(detail) if detail is not None and detail.isdigit() else None


def has_body(scope: MutableMapping[str, Any]) -> bool:
    """True if the head of a request announces a body (RFC 9112 section 6.3)."""
    return bool(declared_length(scope)) or headers_of(scope).get(b"transfer-encoding") is not None


async def read_body(receive: Receive, *, limit: int, deadline: float, declared: int | None = None) -> bytes:
    """Read the whole body within `deadline` seconds. For a `PacedBody`, the pace of the edge applies instead.

    Raises:
        DocumentTooLarge: the actual or declared length exceeds `limit` bytes; the rest of the body is not read.
        InvalidBody: the body did not arrive within `deadline` seconds.
        ClientDisconnect: the client disconnected, or a `PacedBody` ended the request because the body was too slow.
    """
    if declared is not None and declared > limit:  # guard: body-limit-declared
        raise _too_large(limit)
    until = time.monotonic() + deadline
    parts: list[bytes] = []
    length = 0
    while True:
        message = await _receive(receive, until, deadline)
        part: bytes = message.get("body", b"")
        length += len(part)
        if length > limit:  # guard: body-limit-counted
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


async def _receive(receive: Receive, until: float, deadline: float) -> Message:
    try:
        message = await receive_within(receive, until - time.monotonic())
    except TimeoutError:
        raise InvalidBody(f"the body did not arrive within {deadline:g} seconds") from None
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message


def _too_large(limit: int) -> DocumentTooLarge:
    return DocumentTooLarge(f"the body exceeds {limit} bytes")
