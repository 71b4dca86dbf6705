"""JSON-RPC messages on lines of standard input: parsed by the rules of an HTTP body, or answered with an error.

The module does not import the SDK, so that a bridge starts fast.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from gateway.definitions.excerpts import shorten
from gateway.domain.json_text import load_json, refuse_many_values
from gateway.errors import BadInput, DocumentTooLarge, InvalidBody, LimitExceeded
from gateway.protocol.limits import MAX_BYTES, MAX_CONTAINERS, MAX_ID_LENGTH, MAX_VALUES
from gateway.protocol.stdio.limits import MAX_ECHOED_ID_LENGTH, MAX_ID_NUMBER, MAX_OPEN
from gateway.protocol.stdio.streams import Oversized

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
LIMITED: Final = 42900

Message = dict[str, Any]


class Refused(Exception):
    """A line that is not an acceptable message; `response` is the error for the client."""

    def __init__(self, code: int, text: str, kind: str, request_id: str | int | None = None) -> None:
        super().__init__(text)
        self.response = error_response(code, text, kind, request_id)


def parse_line(line: bytes | Oversized) -> Message:
    """Return the message of a line.

    Raises:
        Refused: the line is too long, not JSON, or not a single JSON-RPC message.
    """
    if isinstance(line, Oversized):
        raise Refused(INVALID_REQUEST, f"the message is larger than {MAX_BYTES} bytes", DocumentTooLarge.code)
    try:
        refuse_many_values(line, values=MAX_VALUES, containers=MAX_CONTAINERS)  # guard: stdio-values
        message = load_json(line)
    except InvalidBody as error:
        raise Refused(PARSE_ERROR, error.message, error.code) from None
    except BadInput as error:
        raise Refused(INVALID_REQUEST, error.message, error.code) from None
    if not isinstance(message, dict):  # guard: stdio-no-batches
        text = "a line must be one JSON-RPC message; batches are refused: send each message as a line of its own"
        raise Refused(INVALID_REQUEST, text, BadInput.code)
    found = cast("Message", message)
    if found.get("jsonrpc") != "2.0" or not (_is_call(found) or _is_response(found)):
        raise not_a_message(found)
    if "method" in found and "id" in found and id_of(found) is None:
        text = f"the line is not one JSON-RPC message: its id must be a string of at most {MAX_ID_LENGTH}"
        raise Refused(INVALID_REQUEST, f"{text} characters, or an integer of 64 bits", BadInput.code)
    return found


def not_a_message(message: Message) -> Refused:
    """The error for an object that is not a JSON-RPC message."""
    return Refused(INVALID_REQUEST, "the line is not one JSON-RPC message", BadInput.code, id_of(message))


def refuse_more(message: Message) -> Refused:
    """The error for a request beyond `MAX_OPEN`."""
    text = f"too many concurrent requests (limit {MAX_OPEN}); wait for a response"
    return Refused(LIMITED, text, LimitExceeded.code, id_of(message))


def refuse_repeated_id(message: Message) -> Refused:
    """The error for a request whose id belongs to a running request; its id is null, as that request has a response."""
    text = f"a request with the id {shorten(str(id_of(message)), MAX_ECHOED_ID_LENGTH)} is running"
    return Refused(INVALID_REQUEST, text, BadInput.code, None)


def error_response(code: int, text: str, kind: str, request_id: str | int | None) -> bytes:
    """Encode an error response; `kind` is the stable code of `docs/errors.md`."""
    error = {"code": code, "message": text, "data": {"code": kind}}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def id_of(message: Mapping[str, object]) -> str | int | None:
    """The id of a request; None if the message is not a request, or its id is not valid."""
    named = message.get("id") if "method" in message else None
    if isinstance(named, str):
        return named if len(named) <= MAX_ID_LENGTH else None
    return named if isinstance(named, int) and not isinstance(named, bool) and abs(named) < MAX_ID_NUMBER else None


def cancelled_by(message: Message) -> str | int | None:
    """The id of the request that a notification cancels; None for any other message."""
    if message.get("method") != "notifications/cancelled" or not isinstance(message.get("params"), dict):
        return None
    named: object = message["params"].get("requestId")
    return named if isinstance(named, str | int) and not isinstance(named, bool) else None


def revision_of(message: Message) -> str | None:
    """The revision that the `_meta` of a request names, as in 2026-07-28; None in the handshake era."""
    match message.get("params"):
        case {"_meta": {"io.modelcontextprotocol/protocolVersion": str(named)}}:
            return named
        case _:
            return None


def _is_call(message: Message) -> bool:
    return isinstance(message.get("method"), str) and isinstance(message.get("params"), dict | None)


def _is_response(message: Message) -> bool:
    return "method" not in message and "id" in message and ("result" in message) != ("error" in message)
