"""Metadata that all primitives share: title, description, icons, annotations, `_meta`, and a declared safety level."""

import base64
import binascii
import re
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import urlsplit

import orjson

from gateway.definitions.contract.limits import (
    MAX_DESCRIPTION_LENGTH,
    MAX_ICON_LENGTH,
    MAX_ICONS,
    MAX_META_BYTES,
    MAX_TITLE_LENGTH,
)
from gateway.definitions.field_reader import FieldReader
from gateway.domain.json_access import as_object, point
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DefinitionInvalid, Fault

ICON_FIELDS = ("src", "mimeType", "sizes", "theme")
ANNOTATION_FIELDS = ("audience", "priority", "lastModified")
THEMES = ("light", "dark")
ROLES = ("user", "assistant")
Level = Safety | str

_SIZE = re.compile(r"any|[1-9][0-9]{0,4}x[1-9][0-9]{0,4}")
_MIME = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,64}/[A-Za-z0-9!#$&^_.+-]{1,64}(?: *+; *+[\x20-\x7e]{0,200})?")
_DATA_ICON = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,")
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_META_KEY = re.compile(rf"(?:({_LABEL}(?:\.{_LABEL})*)/)?((?:[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?)?)")
_RESERVED_LABELS = frozenset(("mcp", "modelcontextprotocol"))
_RESERVED_PREFIX = "gateway"


def read_title(reader: FieldReader) -> str | None:
    """Read the title."""
    return reader.string("title", max_length=MAX_TITLE_LENGTH)


def read_description(reader: FieldReader, *, required: bool = False) -> str | None:
    """Read the description."""
    return reader.string("description", max_length=MAX_DESCRIPTION_LENGTH, required=required)


def read_mime_type(reader: FieldReader) -> str | None:
    """Read the MIME type."""
    value = reader.string("mimeType", max_length=300)
    if value is not None and not _MIME.fullmatch(value):
        reader.refuse("mimeType", "is not a MIME type, such as text/plain")
        return None
    return value


def read_icons(reader: FieldReader) -> tuple[Mapping[str, object], ...] | None:
    """Read the icons. A source is an https URL, or base64 data of an image type that cannot contain script."""
    if not reader.has("icons"):
        return None
    icons: list[Mapping[str, object]] = []
    for index, raw in enumerate(reader.items("icons", max_items=MAX_ICONS)):
        icon = FieldReader(raw, ICON_FIELDS, where=reader.at("icons") + point(index), faults=reader.faults)
        source = icon.string("src", max_length=MAX_ICON_LENGTH, required=True)
        if source is not None and not _is_picture(source):
            icon.refuse("src", "must be an https URL, or data:image/png, jpeg, gif or webp in base64")
        read_mime_type(icon)
        icon.choice("theme", THEMES)
        for number, size in enumerate(icon.strings("sizes", max_items=16, max_length=16)):
            if not _SIZE.fullmatch(size):
                icon.faults.add(icon.at("sizes") + point(number), "must be WIDTHxHEIGHT or any")
        icons.append(dict(as_object(raw) or {}))
    return tuple(icons)


def read_annotations(reader: FieldReader) -> Mapping[str, object] | None:
    """Read the annotations: audience, priority and time of the last change."""
    annotations = reader.nested("annotations", ANNOTATION_FIELDS)
    if annotations is None:
        return None
    for index, role in enumerate(annotations.items("audience", max_items=len(ROLES))):
        if role not in ROLES:
            annotations.faults.add(annotations.at("audience") + point(index), f"must be one of {', '.join(ROLES)}")
    annotations.number("priority", minimum=0, maximum=1)
    changed = annotations.string("lastModified", max_length=64)
    if changed is not None and not _is_time(changed):
        annotations.refuse("lastModified", "must be a date and time, such as 2030-01-31T12:00:00Z")
    return reader.members("annotations")


GUARDRAILS_META = "gateway/guardrails"
"""The mark of a guardrail. It is accepted in contents, because a handler may return marked contents of a resource."""


def read_meta(reader: FieldReader) -> Mapping[str, object] | None:
    """Read `_meta`, at most 16 KiB of JSON. Keys with the prefixes of the protocol or of the gateway are refused."""
    meta = reader.members("_meta")
    for key in meta or {}:
        found = _META_KEY.fullmatch(key)
        if found is None or not key:
            reader.faults.add(
                reader.at("_meta") + point(key), "is not a key: an optional prefix/, then letters and digits"
            )
        elif found[1] is not None and _is_reserved(found[1]) and key != GUARDRAILS_META:
            reader.faults.add(reader.at("_meta") + point(key), "has a prefix that is reserved")
    if meta is not None and len(orjson.dumps(meta)) > MAX_META_BYTES:
        reader.refuse("_meta", f"is larger than {MAX_META_BYTES} bytes")
    return meta


def is_mime_type(value: str) -> bool:
    """True if the text is a MIME type."""
    return _MIME.fullmatch(value) is not None


def _is_reserved(prefix: str) -> bool:
    labels = prefix.lower().split(".")
    return labels[0] == _RESERVED_PREFIX or not _RESERVED_LABELS.isdisjoint(labels[:2])


def _is_picture(source: str) -> bool:
    data = _DATA_ICON.match(source)
    if data is not None:
        try:
            base64.b64decode(source[data.end() :], validate=True)
        except binascii.Error:
            return False
        return True
    if any(character <= " " for character in source) or not source.isascii():
        return False
    try:
        parts = urlsplit(source)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return "T" in text or len(text) == len("2030-01-31")


def read_level(declared: Level) -> Safety:
    """Return the declared safety level.

    Raises:
        DefinitionInvalid: there is no such level.
    """
    try:
        return Safety(declared)
    except ValueError:
        message = f"safety must be one of {', '.join(Safety)}"
        raise DefinitionInvalid(message, faults=[Fault(pointer="/safety", reason=message)]) from None
