"""How the body of an upstream's answer is read: whether it is text or JSON, and in which MIME type."""

import codecs

import msgspec

from gateway.definitions.contract.metadata import is_mime_type
from gateway.domain.http.requests import UpstreamAnswer
from gateway.errors import HandlerFailed
from gateway.handlers.response_body import kinds
from gateway.handlers.response_body.charsets import decode_text

BYTES = "application/octet-stream"
JSON = "application/json"
TEXT = "text/plain"

_MOST_CONTAINERS = 150_000
_MOST_VALUES = 500_000
"""Objects and lists, and values in all, that are made Python values on the event loop: 50 ms at most."""


def kind_of(answer: UpstreamAnswer) -> str:
    """The MIME type without parameters; empty when none was sent, or what was sent is none."""
    kind, _ = kinds.kind_of(answer)
    return kind if is_mime_type(kind) else ""


def read_json(answer: UpstreamAnswer) -> object:
    """The body as a JSON value, integers of any size whole.

    Raises:
        HandlerFailed: it is none, or has more values than are read on the event loop.
    """
    _refuse_many(answer.body)
    try:
        return msgspec.json.decode(answer.body.removeprefix(codecs.BOM_UTF8))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HandlerFailed("the upstream answered with something that is not JSON") from None


def _refuse_many(body: bytes) -> None:
    if len(body) <= _MOST_CONTAINERS:  # the usual answer: each value takes a byte at least
        return
    containers = body.count(b"{") + body.count(b"[")
    if containers > _MOST_CONTAINERS or containers + body.count(b",") > _MOST_VALUES:
        raise HandlerFailed(
            f"the upstream's answer has more JSON values than can be read here: {_MOST_VALUES}, of which"
            f" {_MOST_CONTAINERS} may be objects and lists; have the upstream send less"
        )


def read_text(answer: UpstreamAnswer) -> str | None:
    """The body as text, in the charset that it is in if that is one that is safe to read; None for what is no text."""
    kind = kind_of(answer)
    if kinds.is_text(kind):
        return decode_text(answer.body, kinds.kind_of(answer)[1], is_xml=kind.endswith("xml"))
    if kind:
        return None
    try:
        return answer.body.decode()
    except UnicodeDecodeError:
        return None
