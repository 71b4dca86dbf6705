"""HTML form encoding of an object as `name=value` pairs, for bodies, parts and parameters."""

from collections.abc import Callable, Sequence

from gateway.domain.http.plans import FieldPlan
from gateway.upstream.serialize.media_types import is_json
from gateway.upstream.serialize.percent_encoding import (
    Unwritable,
    is_list,
    is_object,
    plus,
    reserved_query,
    to_json,
    to_text,
    write_at,
)
from gateway.upstream.serialize.styles import Writer, list_divider, query_writer

_FieldWriter = Callable[[str, object], str]


def form_writer(fields: Sequence[FieldPlan] = ()) -> Callable[[object], str]:
    """Return the writer of an object as `name=value` pairs; a property without a field plan gets OpenAPI's defaults.

    The defaults: one pair per list member, objects as JSON, other values as text.
    """
    writers = {field.name: _field_writer(field) for field in fields}

    def write(value: object) -> str:
        if not is_object(value):
            raise Unwritable("it must be an object to be sent as a form")
        parts = [
            write_at(name, writers.get(name, _default_field), name, item)
            for name, item in value.items()
            if item is not None
        ]
        return "&".join(part for part in parts if part)

    return write


def _default_field(name: str, value: object) -> str:
    key = plus(name)
    if is_list(value):
        return "&".join(f"{key}={plus(to_text(member))}" for member in value if member is not None)
    return f"{key}={plus(to_text(value))}"


def _json_pairs(name: str, value: object) -> str:
    """Return one pair per list member, each with the member as JSON."""
    return "&".join(f"{plus(name)}={plus(to_json(item))}" for item in (value if is_list(value) else (value,)))


def _field_writer(field: FieldPlan) -> _FieldWriter:
    if field.media_type is not None:
        if is_json(field.media_type):
            return _json_pairs if field.is_list else lambda name, value: f"{plus(name)}={plus(to_json(value))}"
        return _default_field
    encode = reserved_query if field.allow_reserved else plus
    write: Writer = query_writer(field.name, field.style, explode=field.explode, encode=encode)
    divide = list_divider([inner.style for inner in field.fields])
    return lambda _, value: write(divide(value))
