"""Writer of multipart bodies (RFC 7578): an object becomes one part per property, a list usually one part per member.

A part may itself be a form or a multipart body (OpenAPI 3.2, nested `encoding`). The boundary occurs in no part (RFC
2046), and is derived from the parts, so that equal arguments produce equal bytes.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.domain.http.headers import is_token
from gateway.domain.http.plans import BodyPlan, FieldPlan, Style, XmlNode
from gateway.errors import NotYetSupported
from gateway.upstream.serialize.file_arguments import OCTETS, File, looks_like_file, read_file
from gateway.upstream.serialize.header_checks import is_header_value
from gateway.upstream.serialize.json_lines import lines_writer
from gateway.upstream.serialize.media_types import essence, is_form, is_json, is_lines, is_yaml
from gateway.upstream.serialize.percent_encoding import (
    Unwritable,
    is_list,
    is_object,
    to_bytes,
    to_json,
    to_text,
    write_at,
)
from gateway.upstream.serialize.styles import list_divider, text_pairs
from gateway.upstream.serialize.urlencoded import form_writer
from gateway.upstream.serialize.xml import xml_writer

_UNNAMED = FieldPlan(name="")
_QUOTED = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})
_BOUNDARY_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Part:
    """One part: name, content, media type, file name and additional headers."""

    name: str | None
    content: bytes
    media_type: str | None = None
    filename: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


_Maker: TypeAlias = Callable[[object], Iterator[_Part]]
_Writer: TypeAlias = Callable[[object], tuple[bytes, str]]


def multipart_writer(plan: BodyPlan) -> _Writer:
    """Return the writer of one multipart body; an array is written as parts without names.

    Raises:
        NotYetSupported: the plan has a header or type that is not possible in a part.
    """
    return _writer(plan.media_type, plan.fields, plan.xml)


def _writer(media_type: str, fields: Sequence[FieldPlan], xml: tuple[XmlNode, ...]) -> _Writer:
    sent_as = media_type.partition(";")[0].strip()
    makers = {field.name: _maker(field, xml) for field in fields if field.name}
    positions = [_maker(field, xml) for field in fields if not field.name] or [_plain_maker(None, _UNNAMED)]
    last = len(positions) - 1

    def write(value: object) -> tuple[bytes, str]:
        if is_object(value):
            parts = [
                part
                for name, item in value.items()
                if item is not None
                for part in write_at(name, _parts, makers.get(name) or _plain_maker(name, FieldPlan(name=name)), item)
            ]
        elif is_list(value):
            parts = [
                part
                for index, item in enumerate(value)
                for part in write_at(index, _parts, positions[min(index, last)], item)
            ]
        else:
            raise Unwritable("it must be an object to be sent in parts")
        return _assemble(parts, sent_as)

    return write


def _parts(make: _Maker, value: object) -> Sequence[_Part]:
    return tuple(make(value))


def _maker(field: FieldPlan, xml: tuple[XmlNode, ...]) -> _Maker:
    for header, value in field.headers:
        if not is_token(header) or not is_header_value(value):
            raise NotYetSupported("A part of the request body has an invalid header.")
    if field.media_type is not None and not is_header_value(field.media_type):
        raise NotYetSupported("The media type of a part of the request body is not a valid header value.")
    if field.is_styled:
        return _styled_maker(field)
    name, media_type = field.name or None, _choose_media_type(field.media_type, None)
    if field.xml is not None:
        return _structure_maker(
            name, field, _text_as(media_type or "application/xml", xml_writer(xml, field.xml, field.name))
        )
    write = _structure_writer(media_type or "", field.fields, xml)
    return _plain_maker(name, field) if write is None else _structure_maker(name, field, write)


def _structure_writer(media_type: str, inner: Sequence[FieldPlan], xml: tuple[XmlNode, ...]) -> _Writer | None:
    """Return the writer of objects and lists in this media type; None if `_plain_maker` is to be used."""
    if essence(media_type).startswith("multipart/"):
        return _writer(media_type, inner, xml)
    if is_form(media_type):
        return _text_as(media_type, form_writer(inner))
    if is_lines(media_type):
        return _text_as(media_type, lines_writer(media_type))
    return _text_as(media_type, to_json) if is_yaml(media_type) else None  # every JSON text is a YAML document


def _text_as(media_type: str, write: Callable[[object], str]) -> _Writer:
    return lambda value: (to_bytes(write(value)), media_type)


def _styled_maker(field: FieldPlan) -> _Maker:
    """Return a maker of text parts in the field's style, without percent-encoding, which parts do not need."""
    style, explode = field.style, field.explode or field.style is Style.DEEP_OBJECT
    divide = list_divider([inner.style for inner in field.fields])

    def make(value: object) -> Iterator[_Part]:
        for key, text in text_pairs(field.name, divide(value), style, explode=explode):
            yield _Part(key, to_bytes(text), headers=field.headers)

    return make


def _structure_maker(name: str | None, field: FieldPlan, write: _Writer) -> _Maker:
    """Return a maker that serializes objects and lists; files and strings are unchanged, except in XML parts."""

    def make_one(item: object) -> _Part:
        if field.xml is None and (looks_like_file(item) or not (is_object(item) or is_list(item))):
            return _part(name, field, item)
        content, media_type = write(item)
        return _Part(name, content, media_type, headers=field.headers)

    def make(value: object) -> Iterator[_Part]:
        if field.is_list and is_list(value):
            yield from (write_at(index, make_one, item) for index, item in enumerate(value))
        else:
            yield make_one(value)

    return make


def _plain_maker(name: str | None, field: FieldPlan) -> _Maker:
    """Return a maker that keeps files, writes objects and nested lists as JSON, and other values as text or JSON."""
    is_whole = field.media_type is not None and is_json(field.media_type) and not field.is_list

    def make(value: object) -> Iterator[_Part]:
        if is_list(value) and not is_whole and name is not None:
            for index, member in enumerate(value):
                if member is not None:
                    yield write_at(index, _part, name, field, member)
        else:
            yield _part(name, field, value)

    return make


def _part(name: str | None, field: FieldPlan, value: object) -> _Part:
    declared = field.media_type
    may_be_file = field.is_file or declared is None or not is_json(declared)
    if may_be_file and looks_like_file(value):
        return _file_part(name, field, read_file(value))
    is_written = field.is_verbatim and isinstance(value, str)
    if is_object(value) or is_list(value) or (declared is not None and is_json(declared) and not is_written):
        if declared is not None and not is_json(declared):
            raise Unwritable(f"the part {name!r} is {declared}, which must be text or a file here")
        return _Part(name, to_bytes(to_json(value)), declared or "application/json", headers=field.headers)
    media_type = _choose_media_type(declared, None)
    return _Part(name, to_bytes(to_text(value)), media_type, headers=field.headers)


def _file_part(name: str | None, field: FieldPlan, file: File) -> _Part:
    media_type = _choose_media_type(field.media_type, file.media_type) or OCTETS
    return _Part(name, file.content, media_type, file.name or name or "file", field.headers)


def _choose_media_type(declared: str | None, own: str | None) -> str | None:
    """Return the media type of a part: the file's own if it is declared, else the first declared one without `*`."""
    types = [item.strip() for item in declared.split(",")] if declared else []
    if own is not None and (not types or any(_covers(item, own) for item in types)):
        return own
    concrete = [item for item in types if "*" not in item]
    return concrete[0] if concrete else own


def _covers(declared: str, own: str) -> bool:
    wanted, given = (text.partition(";")[0].strip().lower() for text in (declared, own))
    if declared.strip().lower() == own.strip().lower() or wanted == "*/*":
        return True
    if wanted.endswith("/*"):
        return given.startswith(wanted[:-1])
    return wanted == given and ";" not in declared


def _assemble(parts: Sequence[_Part], essence: str) -> tuple[bytes, str]:
    """Join the parts into one body; return its bytes and content type.

    Raises:
        Unwritable: a name has a control character, or a header a lone surrogate.
    """
    heads = [_head(part) for part in parts]
    boundary = _boundary(heads, parts)
    mark = b"--" + boundary.encode()
    pieces: list[bytes] = []
    for head, part in zip(heads, parts, strict=True):
        pieces += [mark, b"\r\n", head, b"\r\n", part.content, b"\r\n"]
    pieces += [mark, b"--\r\n"]
    return b"".join(pieces), f"{essence}; boundary={boundary}"


def _head(part: _Part) -> bytes:
    lines: list[str] = []
    if part.name is not None:
        disposition = f'Content-Disposition: form-data; name="{_quoted(part.name)}"'
        lines.append(disposition if part.filename is None else f'{disposition}; filename="{_quoted(part.filename)}"')
    elif part.filename is not None:
        lines.append(f'Content-Disposition: attachment; filename="{_quoted(part.filename)}"')
    if part.media_type is not None:
        lines.append(f"Content-Type: {part.media_type}")
    lines += [f"{name}: {value}" for name, value in part.headers]
    return to_bytes("".join(f"{line}\r\n" for line in lines))


def _quoted(text: str) -> str:
    """Quote a name as browsers do (HTML, multipart/form-data encoding algorithm)."""
    quoted = text.translate(_QUOTED)
    if any(character < " " or character == "\x7f" for character in quoted):
        raise Unwritable("a name has a control character")
    return quoted


def _boundary(heads: Sequence[bytes], parts: Sequence[_Part]) -> str:
    digest = hashlib.blake2b(digest_size=_BOUNDARY_BYTES)
    for head, part in zip(heads, parts, strict=True):
        digest.update(len(head).to_bytes(8, "big") + len(part.content).to_bytes(8, "big") + head)
        digest.update(part.content)
    boundary = digest.hexdigest()
    while any(boundary.encode() in piece for piece in (*heads, *(part.content for part in parts))):
        boundary = hashlib.blake2b(boundary.encode(), digest_size=_BOUNDARY_BYTES).hexdigest()
    return boundary
