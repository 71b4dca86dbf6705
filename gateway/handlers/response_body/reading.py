"""Reading of upstream responses: MIME type, and body as text or JSON."""

import codecs

import msgspec

from gateway.definitions.contract.metadata import is_mime_type
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.json_text import decode_json
from gateway.errors import HandlerFailed
from gateway.handlers.response_body import kinds
from gateway.handlers.response_body.charsets import decode_text
from gateway.handlers.response_body.limits import MAX_CONTAINERS, MAX_VALUES

BYTES = "application/octet-stream"
JSON = "application/json"
TEXT = "text/plain"


def kind_of(response: UpstreamResponse) -> str:
    """Return the MIME type without parameters; empty if none or an invalid one was sent."""
    kind, _ = kinds.kind_of(response)
    return kind if is_mime_type(kind) else ""


def read_json(response: UpstreamResponse) -> object:
    """Return the body as a JSON value; integers keep every digit.

    Raises:
        HandlerFailed: the body is not JSON, or has more values than this process reads.
    """
    if has_many_values(response.body):  # guard: answer-values
        raise HandlerFailed(
            f"the upstream's response has too many JSON values (limit {MAX_VALUES}, of which {MAX_CONTAINERS} "
            f"objects and lists); request less data"
        )
    return decode_body(response.body)


def decode_body(body: bytes) -> object:
    """Return the JSON value of a body with any number of values; see `read_json`.

    Raises:
        HandlerFailed: the body is not JSON.
    """
    try:
        return decode_json(body.removeprefix(codecs.BOM_UTF8))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HandlerFailed("the upstream returned a response that is not JSON") from None


def has_many_values(body: bytes) -> bool:
    """True if reading the body would hold the interpreter lock for more than about 50 ms."""
    if len(body) <= MAX_CONTAINERS:  # the usual case: a small body, because each value takes at least one byte
        return False
    containers = body.count(b"{") + body.count(b"[")
    return containers > MAX_CONTAINERS or containers + body.count(b",") > MAX_VALUES


def read_text(response: UpstreamResponse) -> str | None:
    """Return the body as text, decoded in its charset if that is safe; None if the body is not text."""
    kind = kind_of(response)
    if kinds.is_text(kind):
        return decode_text(response.body, kinds.kind_of(response)[1], is_xml=kind.endswith("xml"))
    if kind:
        return None
    try:
        return response.body.decode()
    except UnicodeDecodeError:
        return None
