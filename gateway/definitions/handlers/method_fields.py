"""Fields of a declared request that web frameworks read as its method, `_method` and its spellings.

Each branch of a template is considered, and any text in place of a value. A field with more than `MAX_METHOD_READINGS`
readings counts as such a field.
"""

import re
from collections.abc import Iterator, Set
from urllib.parse import unquote

from gateway.definitions.handlers.limits import MAX_METHOD_FIELD_LENGTH, MAX_METHOD_READINGS
from gateway.definitions.handlers.specs import HttpSpec
from gateway.definitions.templates.parser import Block, IfNode, TextNode
from gateway.definitions.templates.template import Template, is_open
from gateway.domain.http.headers import METHOD_FIELD
from gateway.domain.json_access import as_object

ANY_METHOD = "*"
"""The caller chooses the method."""

_VALUE = "\ue000"
"""A filled value. In a query and in a form it is percent-encoded, so it stays within its field."""
_LITERAL_FIELD = re.compile(rf"(?:^|[?&]){METHOD_FIELD}=([^&#]*)")
_SEPARATORS = re.compile("[&;]")  # some servers also split at `;`
_PARTIAL_ESCAPE = re.compile(f"%[0-9A-Fa-f]?(?={_VALUE})")
_AS_UNDERSCORE = str.maketrans(". [", "___")  # PHP writes these characters in names as `_`

_Fields = Set[str | None]
"""Readings of the field that a text ends in; None while the text is still in the path of a URL."""


def methods_in_fields(spec: HttpSpec) -> Set[str]:
    """The methods that fields of the query and body can name; `ANY_METHOD` if a caller can choose one."""
    return {*_in_text(spec.url.rest.block, None), *_in_body(spec)}


def _in_body(spec: HttpSpec) -> Iterator[str]:
    if spec.body is None:
        return
    members = as_object(spec.body.source)
    if members is not None and METHOD_FIELD in members:
        yield str(members[METHOD_FIELD])
    source = spec.body.source
    if not isinstance(source, str):
        return
    # Some frameworks read a form whatever its content type is, but another text is not parsed for filled names.
    yield from _LITERAL_FIELD.findall(unquote(source))
    types = [header.source.lower() for name, header in spec.headers if name.lower() == "content-type"]
    if not any("form" in kind or is_open(kind) for kind in types):
        return
    template = Template.parse(source)
    yield from _in_text(template.block, "")
    # guard: method-override-form-text
    if not template.is_filtered_by("url_encode"):
        yield ANY_METHOD  # an unencoded value can end its field and begin another one
    if METHOD_FIELD in source and any("form-data" in kind or is_open(kind) for kind in types):
        yield ANY_METHOD


def _in_text(block: Block, start: str | None) -> Iterator[str]:
    complete: set[str] = set()
    last = _read(block, {start}, complete)
    for field in complete | {field for field in last if field is not None}:
        name, mark, value = field.partition("=")
        if mark and _is_method_field(name):
            yield ANY_METHOD if _VALUE in value else unquote(value)


def _read(block: Block, fields: _Fields, complete: set[str]) -> _Fields:
    """Return the readings of the last field after a block that follows `fields`; add the fields that end in it."""
    for node in block:
        if isinstance(node, IfNode):
            branches = [_read(branch.body, fields, complete) for branch in node.branches]
            without = fields if node.branches[-1].test is not None else ()
            fields = {*without, *(field for branch in branches for field in branch)}
        else:
            text = node.text if isinstance(node, TextNode) else _VALUE
            fields = {_follow(field, text, complete) for field in fields}
        if len(fields) > MAX_METHOD_READINGS:
            complete.add(f"{METHOD_FIELD}={_VALUE}")
            fields = {""}
    return fields


def _follow(field: str | None, text: str, complete: set[str]) -> str | None:
    if field is None:
        _, mark, text = text.partition("?")
        if not mark:
            return None
    *ended, last = _SEPARATORS.split((field or "") + text)
    complete.update(map(_cut, ended))
    return _cut(last)


def _cut(field: str) -> str:
    """Return a field of bounded length; a name that exceeds it counts as any name."""
    name, mark, value = field.replace(_VALUE * 2, _VALUE).partition("=")
    return (name if len(name) <= MAX_METHOD_FIELD_LENGTH else _VALUE) + mark + value[:MAX_METHOD_FIELD_LENGTH]


def _is_method_field(name: str) -> bool:
    """True if some values make the name one that a framework reads as `METHOD_FIELD`."""
    name = unquote(_PARTIAL_ESCAPE.sub("", name).replace("+", " ")).lstrip()
    literals = [re.escape(part) for part in name.translate(_AS_UNDERSCORE).lower().split(_VALUE)]
    if sum(map(len, literals)) > len(METHOD_FIELD):
        return False
    # guard: method-override-filled-names
    return re.fullmatch(".*".join(literals), METHOD_FIELD) is not None
