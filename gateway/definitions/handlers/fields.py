"""Readers of the fields that several kinds of handlers share: templates, trees, conditions, declared results, result
names.
"""

import re
from collections.abc import Mapping, Sequence

from gateway.definitions.contract.metadata import read_mime_type
from gateway.definitions.field_reader import FieldReader
from gateway.definitions.handlers.specs import TemplateSpec
from gateway.definitions.templates.limits import MAX_TEMPLATE_LENGTH
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.domain.primitives import Family
from gateway.errors import TemplateInvalid

DECLARED_RESULT_FIELDS = ("text", "json", "content", "contents", "messages", "mimeType", "isError")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RESERVED_NAMES = frozenset(("arguments", "true", "false", "nil", "null", "empty", "blank"))
_FIELDS_BY_FAMILY: Mapping[Family, tuple[str, ...]] = {
    Family.TOOL: ("text", "json", "content"),
    Family.RESOURCE: ("text", "json", "contents"),
    Family.TEMPLATE: ("text", "json", "contents"),
    Family.PROMPT: ("text", "json", "messages"),
}
LISTED: Mapping[Family, str] = {
    Family.TOOL: "content",
    Family.RESOURCE: "contents",
    Family.TEMPLATE: "contents",
    Family.PROMPT: "messages",
}
"""For each family, the result field that contains a list of protocol objects."""


def read_template(reader: FieldReader, name: str, *, required: bool = False) -> Template | None:
    """Read a string with placeholders."""
    if required:
        reader.require(name)
    if not reader.has(name):
        return None
    text = reader.raw(name)
    if not isinstance(text, str):
        reader.refuse(name, "must be a string")
        return None
    try:
        return Template.parse(text)
    except TemplateInvalid as wrong:
        reader.faults.take(wrong, reader.at(name))
        return None


def read_tree(reader: FieldReader, name: str, *, required: bool = False) -> Tree | None:
    """Read a JSON value whose strings may contain placeholders."""
    if required:
        reader.require(name)
    if not reader.has(name):
        return None
    try:
        return Tree.parse(reader.json(name))
    except TemplateInvalid as wrong:
        reader.faults.take(wrong, reader.at(name))
        return None


def read_condition(reader: FieldReader, name: str) -> Condition | None:
    """Read a condition."""
    text = reader.string(name, max_length=MAX_TEMPLATE_LENGTH, required=True)
    if text is None:
        return None
    try:
        return Condition.parse(text)
    except TemplateInvalid as wrong:
        reader.faults.take(wrong, reader.at(name))
        return None


def read_declared_result(reader: FieldReader, family: Family) -> TemplateSpec:
    """Read a declared result; exactly one of the fields that the family allows contains it."""
    given = [name for name in ("text", "json", "content", "contents", "messages") if reader.has(name)]
    allowed = _FIELDS_BY_FAMILY[family]
    for name in given:
        if name not in allowed:
            reader.refuse(name, f"is not a possible result of a {family.value}; use one of {', '.join(allowed)}")
    if len(given) != 1 and reader.is_object:
        reader.faults.add(reader.where, f"must have exactly one of {', '.join(allowed)}")
    refuse_in_other_families(reader, family, "isError", (Family.TOOL,))
    refuse_in_other_families(reader, family, "mimeType", (Family.RESOURCE, Family.TEMPLATE))
    lists = {name: _read_list(reader, name) for name in ("content", "contents", "messages")}
    return TemplateSpec(
        text=read_template(reader, "text"),
        json=read_tree(reader, "json"),
        content=lists["content"],
        contents=lists["contents"],
        messages=lists["messages"],
        mime_type=read_mime_type(reader),
        is_error=reader.flag("isError") or False,
    )


def refuse_in_other_families(reader: FieldReader, family: Family, name: str, families: Sequence[Family]) -> None:
    """Add a fault if the field was sent and the family is not one of `families`."""
    if reader.has(name) and family not in families:
        reader.refuse(name, f"is not possible for a {family.value}")


def read_result_name(reader: FieldReader) -> str | None:
    """Read the name under which a result is stored."""
    name = reader.string("as", max_length=64)
    if name is not None and (not _NAME.fullmatch(name) or name in _RESERVED_NAMES):
        reader.refuse("as", "has to consist of letters, digits and _, and must not be a predefined name of templates")
        return None
    return name


def _read_list(reader: FieldReader, name: str) -> Tree | None:
    tree = read_tree(reader, name)
    if tree is not None and not isinstance(tree.source, list):
        reader.refuse(name, "must be a list")
    return tree
