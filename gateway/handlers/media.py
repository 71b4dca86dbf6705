"""How the body of an upstream's answer is read: whether it is text or JSON, and in which MIME type."""

import msgspec

from gateway.domain.requests import UpstreamAnswer
from gateway.errors import HandlerFailed

BYTES = "application/octet-stream"
JSON = "application/json"
TEXT = "text/plain"

_TEXTUAL = ("+json", "/json", "+xml", "/xml", "+yaml", "/yaml", "/javascript", "/graphql", "/x-ndjson")


def kind_of(answer: UpstreamAnswer) -> str:
    """The MIME type without parameters; empty when none was sent."""
    return answer.content_type.partition(";")[0].strip().lower()


def read_json(answer: UpstreamAnswer) -> object:
    """The body as a JSON value, integers of any size whole.

    Raises:
        HandlerFailed: it is none.
    """
    try:
        return msgspec.json.decode(answer.body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise HandlerFailed("the upstream answered with something that is not JSON") from None


def read_text(answer: UpstreamAnswer) -> str | None:
    """The body as text; None for what is no text."""
    kind = kind_of(answer)
    is_text = kind.startswith("text/") or kind.endswith(_TEXTUAL)
    if not is_text and kind:
        return None
    try:
        return answer.body.decode(_charset(answer.content_type), "replace" if is_text else "strict")
    except (LookupError, UnicodeDecodeError):
        return answer.body.decode("utf-8", "replace") if is_text else None


def _charset(content_type: str) -> str:
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip("\"'") or "utf-8"
    return "utf-8"
