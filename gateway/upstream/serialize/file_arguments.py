"""File arguments: objects of the form `{"base64", "filename", "content_type"}`."""

import base64
import binascii
import re
from dataclasses import dataclass

from gateway.upstream.serialize.header_checks import is_header_value
from gateway.upstream.serialize.percent_encoding import Unwritable, is_object

OCTETS = "application/octet-stream"

_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")
_MEMBERS = frozenset(("base64", "filename", "content_type"))


@dataclass(frozen=True, slots=True)
class File:
    """The bytes of a file, and the name and media type from the argument."""

    content: bytes
    name: str | None = None
    media_type: str | None = None


def looks_like_file(value: object) -> bool:
    """True if a value is an object with the members of a file argument only."""
    return is_object(value) and isinstance(value.get("base64"), str) and value.keys() <= _MEMBERS


def read_file(value: object) -> File:
    """Return the file in an argument.

    Raises:
        Unwritable: the value is not a file argument, or its base64 is invalid.
    """
    members = value if is_object(value) else {}
    encoded, name, media_type = (members.get(key) for key in ("base64", "filename", "content_type"))
    if not isinstance(encoded, str):
        raise Unwritable("it must be an object with the member 'base64'")
    if name is not None and not isinstance(name, str):
        raise Unwritable("its 'filename' is not a string")
    if media_type is not None and not _is_media_type(media_type):
        raise Unwritable("its 'content_type' is not a media type")
    try:
        content = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Unwritable("its 'base64' is not base64") from None
    return File(content, name, media_type if isinstance(media_type, str) else None)


def _is_media_type(text: object) -> bool:
    return isinstance(text, str) and _MEDIA_TYPE.fullmatch(text) is not None and is_header_value(text)
