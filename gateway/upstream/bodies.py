"""How the body argument becomes bytes and a content type, per kind of media type."""

import base64
import binascii
import codecs
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from gateway.domain.plans import BodyKind, BodyPlan, FieldPlan
from gateway.errors import NotYetSupported
from gateway.upstream.styles import Writer, query_writer
from gateway.upstream.text import Unwritable, is_list, is_object, plus, reserved_query, to_bytes, to_json, to_text
from gateway.upstream.wire import is_header_value

BodyWriter: TypeAlias = Callable[[object], tuple[bytes, str]]
"""Bytes and content type of a body."""

_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)\"?", re.IGNORECASE)
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(?:\s*;.*)?")
_OCTETS = "application/octet-stream"


def body_writer(plan: BodyPlan) -> BodyWriter:
    """The writer for one request body.

    Raises:
        NotYetSupported: a kind of body that this version does not write, or a media type that no header can carry.
    """
    make = _MAKERS.get(plan.kind)
    if make is None:
        raise NotYetSupported(f"Request bodies of type {plan.media_type!r} cannot be sent yet.")
    if not is_header_value(plan.media_type):
        raise NotYetSupported("The media type of the request body is not one that a header can carry.")
    return make(plan)


def is_json(media_type: str) -> bool:
    """Whether a media type is JSON or one of its `+json` relatives."""
    essence = media_type.partition(";")[0].strip().lower()
    return essence in {"application/json", "text/json"} or essence.endswith("+json")


def is_form(media_type: str) -> bool:
    """Whether a media type is the HTML form encoding."""
    return media_type.partition(";")[0].strip().lower() == "application/x-www-form-urlencoded"


def form_writer(fields: tuple[FieldPlan, ...] = ()) -> Callable[[object], str]:
    """An object as `name=value` pairs; a property without a field plan gets the defaults of OpenAPI.

    Those are: lists repeated, objects as JSON, all else as text.
    """
    writers = {field.name: _field_writer(field) for field in fields}

    def write(value: object) -> str:
        if not is_object(value):
            raise Unwritable("it must be an object to be sent as a form")
        parts = [writers.get(name, _default_field)(name, item) for name, item in value.items() if item is not None]
        return "&".join(part for part in parts if part)

    return write


def _default_field(name: str, value: object) -> str:
    key = plus(name)
    if is_list(value):
        return "&".join(f"{key}={plus(to_text(member))}" for member in value if member is not None)
    return f"{key}={plus(to_text(value))}"


def _field_writer(field: FieldPlan) -> Callable[[str, object], str]:
    if field.media_type is not None:
        if is_json(field.media_type):
            return lambda name, value: f"{plus(name)}={plus(to_json(value))}"
        return _default_field
    encode = reserved_query if field.allow_reserved else plus
    write: Writer = query_writer(field.name, field.style, explode=field.explode, encode=encode)
    return lambda _, value: write(value)


def _json(plan: BodyPlan) -> BodyWriter:
    return lambda value: (to_bytes(to_json(value)), plan.media_type)


def _form(plan: BodyPlan) -> BodyWriter:
    write = form_writer(plan.fields)
    return lambda value: (write(value).encode("ascii"), plan.media_type)


def _text(plan: BodyPlan) -> BodyWriter:
    found = _CHARSET.search(plan.media_type)
    charset = found[1] if found else "utf-8"
    try:
        charset = codecs.lookup(charset).name
    except LookupError:
        raise NotYetSupported("The charset of the request body is not one that this version writes.") from None
    if charset not in {"utf-8", "ascii", "iso8859-1", "utf-16"}:
        raise NotYetSupported("The charset of the request body is not one that this version writes.")

    def write(value: object) -> tuple[bytes, str]:
        if is_list(value) or is_object(value):
            raise Unwritable("it must be text")
        raw = to_bytes(to_text(value), charset)
        says_charset = found is not None or raw.isascii() or not plan.media_type.lower().startswith("text/")
        return raw, plan.media_type if says_charset else f"{plan.media_type}; charset=utf-8"

    return write


def _bytes(plan: BodyPlan) -> BodyWriter:
    is_range = "*" in plan.media_type

    def write(value: object) -> tuple[bytes, str]:
        if isinstance(value, str):
            return to_bytes(value), _OCTETS if is_range else plan.media_type
        raw, own_type = read_file(value)
        return raw, (own_type or _OCTETS) if is_range else plan.media_type

    return write


def read_file(value: object) -> tuple[bytes, str | None]:
    """The bytes and the content type of a file argument `{"base64", "filename", "content_type"}`.

    Raises:
        Unwritable: it has another form, or its base64 is not base64.
    """
    encoded, media_type = (value.get("base64"), value.get("content_type")) if is_object(value) else (None, None)
    if not isinstance(encoded, str):
        raise Unwritable("it must be a string or an object with the member 'base64'")
    if media_type is not None and not (
        isinstance(media_type, str) and _MEDIA_TYPE.fullmatch(media_type) and is_header_value(media_type)
    ):
        raise Unwritable("its 'content_type' is not a media type")
    try:
        return base64.b64decode(encoded, validate=True), media_type
    except (binascii.Error, ValueError):
        raise Unwritable("its 'base64' is not base64") from None


_MAKERS: Mapping[BodyKind, Callable[[BodyPlan], BodyWriter]] = {
    BodyKind.JSON: _json,
    BodyKind.FORM: _form,
    BodyKind.TEXT: _text,
    BodyKind.BYTES: _bytes,
}
