"""Readers of the fields that several kinds of handlers share: templates, trees, conditions, answers, result names."""

import re
from collections.abc import Mapping, Sequence

from gateway.definitions.contract.metadata import read_mime_type
from gateway.definitions.field_reader import FieldReader
from gateway.definitions.handlers.specs import TemplateSpec
from gateway.definitions.templates.template import Condition, Template, Tree
from gateway.domain.primitives import Family
from gateway.errors import TemplateInvalid

MAX_TEMPLATE_LENGTH = 64 * 1024
ANSWER_FIELDS = ("text", "json", "content", "contents", "messages", "mimeType", "isError")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_RESERVED_NAMES = frozenset(("arguments", "true", "false", "nil", "null", "empty", "blank"))
_ANSWER_FORMS: Mapping[Family, tuple[str, ...]] = {
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
"""For each family, the answer field that contains a list of protocol objects."""


def read_template(form: FieldReader, name: str, *, required: bool = False) -> Template | None:
    """Read a text with placeholders."""
    if required:
        form.require(name)
    if not form.has(name):
        return None
    text = form.raw(name)
    if not isinstance(text, str):
        form.refuse(name, "must be text")
        return None
    try:
        return Template.parse(text)
    except TemplateInvalid as wrong:
        form.faults.take(wrong, form.at(name))
        return None


def read_tree(form: FieldReader, name: str, *, required: bool = False) -> Tree | None:
    """Read a JSON value whose texts may contain placeholders."""
    if required:
        form.require(name)
    if not form.has(name):
        return None
    try:
        return Tree.parse(form.json(name))
    except TemplateInvalid as wrong:
        form.faults.take(wrong, form.at(name))
        return None


def read_condition(form: FieldReader, name: str) -> Condition | None:
    """Read a condition."""
    text = form.text(name, max_length=MAX_TEMPLATE_LENGTH, required=True)
    if text is None:
        return None
    try:
        return Condition.parse(text)
    except TemplateInvalid as wrong:
        form.faults.take(wrong, form.at(name))
        return None


def read_answer(form: FieldReader, family: Family) -> TemplateSpec:
    """Read an answer; exactly one of the fields that the family allows contains it."""
    given = [name for name in ("text", "json", "content", "contents", "messages") if form.has(name)]
    allowed = _ANSWER_FORMS[family]
    for name in given:
        if name not in allowed:
            form.refuse(name, f"is not a possible result of a {family.value}; use one of {', '.join(allowed)}")
    if len(given) != 1 and form.is_object:
        form.faults.add(form.where, f"must have exactly one of {', '.join(allowed)}")
    refuse_in_other_families(form, family, "isError", (Family.TOOL,))
    refuse_in_other_families(form, family, "mimeType", (Family.RESOURCE, Family.TEMPLATE))
    lists = {name: _read_list(form, name) for name in ("content", "contents", "messages")}
    return TemplateSpec(
        text=read_template(form, "text"),
        json=read_tree(form, "json"),
        content=lists["content"],
        contents=lists["contents"],
        messages=lists["messages"],
        mime_type=read_mime_type(form),
        is_error=form.flag("isError") or False,
    )


def refuse_in_other_families(form: FieldReader, family: Family, name: str, families: Sequence[Family]) -> None:
    """Add a fault if the field was sent and the family is not one of `families`."""
    if form.has(name) and family not in families:
        form.refuse(name, f"is not possible for a {family.value}")


def read_result_name(form: FieldReader) -> str | None:
    """Read the name under which a result is stored."""
    name = form.text("as", max_length=64)
    if name is not None and (not _NAME.fullmatch(name) or name in _RESERVED_NAMES):
        form.refuse("as", "has to consist of letters, digits and _, and must not be a predefined name of templates")
        return None
    return name


def _read_list(form: FieldReader, name: str) -> Tree | None:
    tree = read_tree(form, name)
    if tree is not None and not isinstance(tree.source, list):
        form.refuse(name, "must be a list")
    return tree
