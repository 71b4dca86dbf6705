"""Body writers: serialize the body argument to bytes and a content type, with one writer per kind of media type."""

import codecs
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.domain.http.plans import BodyKind, BodyPlan
from gateway.errors import NotYetSupported
from gateway.upstream.serialize.file_arguments import OCTETS, read_file
from gateway.upstream.serialize.header_checks import is_header_value
from gateway.upstream.serialize.json_lines import lines_writer
from gateway.upstream.serialize.multipart import multipart_writer
from gateway.upstream.serialize.percent_encoding import Unwritable, is_list, is_object, to_bytes, to_json, to_text
from gateway.upstream.serialize.urlencoded import form_writer
from gateway.upstream.serialize.xml import xml_writer

BodyWriter: TypeAlias = Callable[[object], tuple[bytes, str]]
"""Writes a body; returns its bytes and content type, or raises Unwritable."""

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)\"?", re.IGNORECASE)
_CHARSETS = frozenset(("utf-8", "ascii", "iso8859-1", "utf-16"))


def body_writer(plan: BodyPlan) -> BodyWriter:
    """Return the writer of one request body.

    Raises:
        NotYetSupported: the kind or charset is unsupported, or the content type is not a valid header.
    """
    make = _WRITER_FACTORIES.get(plan.kind)
    if make is None:
        raise NotYetSupported(f"Request bodies of type {plan.media_type!r} cannot be sent yet.")
    if not is_header_value(plan.media_type):
        raise NotYetSupported("The media type of the request body is not a valid header value.")
    return make(plan)


def _json(plan: BodyPlan) -> BodyWriter:
    """Return the JSON writer: UTF-8, or ASCII if another charset is declared, because most charsets extend ASCII."""
    declared = _CHARSET.search(plan.media_type)
    ascii_only = declared is not None and declared[1].lower() not in {"utf-8", "utf8"}
    return lambda value: (to_bytes(to_json(value, ascii_only=ascii_only)), plan.media_type)


def _json_lines(plan: BodyPlan) -> BodyWriter:
    write = lines_writer(plan.media_type)
    return lambda value: (to_bytes(write(value)), plan.media_type)


def _xml(plan: BodyPlan) -> BodyWriter:
    charset = _charset(plan.media_type) or "utf-8"
    if charset not in _CHARSETS:
        raise _unknown_charset()
    write = xml_writer(plan.xml, 0, plan.root or "root")
    return lambda value: (write(value).encode(charset, "xmlcharrefreplace"), plan.media_type)


def _form(plan: BodyPlan) -> BodyWriter:
    write = form_writer(plan.fields)
    return lambda value: (write(value).encode("ascii"), plan.media_type)


def _charset(media_type: str) -> str | None:
    """Return the charset of a media type, by Python's name; None without a charset.

    Raises:
        NotYetSupported: Python does not know the charset.
    """
    found = _CHARSET.search(media_type)
    if found is None:
        return None
    try:
        return codecs.lookup(found[1]).name
    except LookupError:
        raise _unknown_charset() from None


def _unknown_charset() -> NotYetSupported:
    return NotYetSupported("The charset of the request body is not supported.")


def _text(plan: BodyPlan) -> BodyWriter:
    declared = _charset(plan.media_type)
    charset = declared or "utf-8"
    if charset not in _CHARSETS:
        raise _unknown_charset()

    def write(value: object) -> tuple[bytes, str]:
        if is_list(value) or is_object(value):
            raise Unwritable("it must be a string")
        raw = to_bytes(to_text(value), charset)
        declares_charset = declared is not None or raw.isascii() or not plan.media_type.lower().startswith("text/")
        return raw, plan.media_type if declares_charset else f"{plan.media_type}; charset=utf-8"

    return write


def _bytes(plan: BodyPlan) -> BodyWriter:
    is_range = "*" in plan.media_type

    def write(value: object) -> tuple[bytes, str]:
        if isinstance(value, str):
            return to_bytes(value), OCTETS if is_range else plan.media_type
        file = read_file(value)
        return file.content, (file.media_type or OCTETS) if is_range else plan.media_type

    return write


_WRITER_FACTORIES: Mapping[BodyKind, Callable[[BodyPlan], BodyWriter]] = {
    BodyKind.JSON: _json,
    BodyKind.JSON_LINES: _json_lines,
    BodyKind.XML: _xml,
    BodyKind.FORM: _form,
    BodyKind.MULTIPART: multipart_writer,
    BodyKind.TEXT: _text,
    BodyKind.BYTES: _bytes,
}
