"""Writer of JSON lines and JSON text sequences (RFC 7464)."""

from collections.abc import Callable

from gateway.upstream.serialize.media_types import essence
from gateway.upstream.serialize.percent_encoding import is_list, to_json

_SEQUENCE_START = "\x1e"


def lines_writer(media_type: str) -> Callable[[object], str]:
    """Return the writer of one JSON text per list member and line; a text sequence puts U+001E before each text."""
    start = _SEQUENCE_START if essence(media_type) == "application/json-seq" else ""

    def write(value: object) -> str:
        return "".join(f"{start}{to_json(item)}\n" for item in (value if is_list(value) else (value,)))

    return write
