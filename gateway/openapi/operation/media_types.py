"""Media types of bodies and responses: the kind of body for each, and the preference among several."""

import re
from collections.abc import Callable, Iterable, Sequence

from gateway.domain.http.plans import BodyKind
from gateway.openapi.operation.limits import MAX_ACCEPTED

_NAME = r"[\w!#$&^.+*-]+"
_FORM = re.compile(rf"{_NAME}/{_NAME}(?: *; *{_NAME}=(?:\"[\w !#$&^.+*/:;,=-]*\"|[\w!#$&^.+*/:-]+))*", re.ASCII)
_CHARSET = re.compile(r"; *charset=\"?([^\"; ]*)")
_CHARSETS = frozenset(("utf-8", "utf8", "us-ascii", "iso-8859-1", "utf-16"))
_JSON = "application/json"
OCTETS = "application/octet-stream"
_RANGES = frozenset(("*/*", "application/*"))
_CONCRETE = {
    "*/*": _JSON,
    "application/*": _JSON,
    "application/*+json": _JSON,
    "application/*+xml": "application/xml",
    "multipart/*": "multipart/form-data",
    "text/*": "text/plain",
}
_XML = frozenset(("application/xml", "text/xml"))
_JSON_LINES = frozenset(
    f"application/{name}" for name in ("jsonl", "jsonlines", "x-jsonlines", "ndjson", "x-ndjson", "json-seq")
)
_YAML = frozenset(("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml"))
_BINARY_APPLICATIONS = frozenset(("octet-stream", "pdf", "zip", "gzip", "x-gzip", "x-tar", "x-7z-compressed", "wasm"))
_PREFERENCE = "application/json, */*;q=0.5"


def essence(media_type: str) -> str:
    """Return the media type without parameters, in lower case."""
    return media_type.split(";", 1)[0].strip().lower()


def is_media_type(text: str) -> bool:
    """True if the text is valid in a Content-Type or Accept header."""
    return _FORM.fullmatch(text) is not None


def is_json(media_type: str) -> bool:
    """True if values of this type are JSON, or if it is a range that includes JSON."""
    name = essence(media_type)
    return name in _RANGES or name == _JSON or name.endswith("+json") or name == "text/json"


def is_xml(media_type: str) -> bool:
    """True if values of this type are XML documents."""
    name = essence(media_type)
    return name in _XML or name.endswith("+xml")


def is_range(media_type: str) -> bool:
    """True if the media type is a range, such as `text/*`."""
    return "*" in essence(media_type)


def concrete(media_type: str) -> str:
    """Return the media type to send: for a known range a type in it, JSON if possible; else the type unchanged."""
    return _CONCRETE.get(essence(media_type), media_type)


def kind_of(media_type: str, *, is_text: bool, is_binary: bool = False) -> BodyKind | None:
    """Return the kind of body for this media type; None for an unknown type or charset.

    `is_text`: the schema is a string. `is_binary`: the schema declares raw bytes, or there is no schema.
    """
    name = essence(media_type)
    if name in _RANGES and is_binary:
        return BodyKind.BYTES
    kind = next((kind for kind, holds in _STRUCTURED if holds(name)), None)
    if kind is not None and not (is_text and kind in _WRITTEN_OUT):
        return kind if kind is not BodyKind.XML or _has_known_charset(media_type) else None
    if (name in _YAML or name.endswith("+yaml")) and not is_text:
        return BodyKind.JSON  # every JSON text is a YAML document
    return _opaque_kind(media_type, is_text=is_text, is_binary=is_binary)


def _opaque_kind(media_type: str, *, is_text: bool, is_binary: bool) -> BodyKind | None:
    major, _, minor = essence(media_type).partition("/")
    if major in {"image", "audio", "video", "font"} or minor in _BINARY_APPLICATIONS:
        return BodyKind.BYTES
    if (major == "text" or is_text) and not (is_binary and major != "text") and _has_known_charset(media_type):
        return BodyKind.TEXT
    return BodyKind.BYTES if is_binary else None


_STRUCTURED: Sequence[tuple[BodyKind, Callable[[str], bool]]] = (
    (BodyKind.JSON_LINES, lambda name: name in _JSON_LINES),
    (BodyKind.JSON, is_json),
    (BodyKind.FORM, lambda name: name == "application/x-www-form-urlencoded"),
    (BodyKind.MULTIPART, lambda name: name.startswith("multipart/")),
    (BodyKind.XML, is_xml),
)


_WRITTEN_OUT = frozenset((BodyKind.XML, BodyKind.JSON_LINES, BodyKind.FORM))
"""Kinds whose body the caller passes as a complete text if the schema is a string."""


def _has_known_charset(media_type: str) -> bool:
    found = _CHARSET.search(media_type.lower())
    return found is None or found[1] in _CHARSETS


def json_rank(media_type: str) -> int:
    """Rank a JSON type for sending a plain JSON value: `application/json` is 0, JSON Patch is last."""
    name = essence(media_type)
    if name == _JSON:
        return 0
    if name in _RANGES:
        return 1
    return 3 if name == "application/json-patch+json" else 2


def accept_header(media_types: Iterable[str]) -> str:
    """Build the Accept header for these response types: JSON types if there are any, else the others; at most five."""
    named: Sequence[str] = list(dict.fromkeys(item for item in media_types if is_media_type(item)))
    wanted = [item for item in named if is_json(item) and essence(item) not in _RANGES]
    if any(is_json(item) for item in named):
        wanted = sorted(wanted or [_JSON], key=json_rank)
    else:
        wanted = [item for item in named if essence(item) not in _RANGES]
    return ", ".join([*wanted[:MAX_ACCEPTED], "*/*;q=0.5"]) if wanted else _PREFERENCE
