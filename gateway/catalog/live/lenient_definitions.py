"""Definitions of live sources in the gateway's contract, which is stricter than the protocol.

Missing members are added; optional members that are invalid, and patterns that cannot be checked, are dropped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from gateway.catalog.live.assessment import explicit_annotations
from gateway.catalog.live.limits import MAX_ROUNDS, MAX_SHOWN_PATTERN_LENGTH
from gateway.definitions.contract.limits import MAX_TITLE_LENGTH
from gateway.definitions.contract.prompts import validate_prompt_definition
from gateway.definitions.contract.resources import validate_resource_definition, validate_resource_template_definition
from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.excerpts import shorten
from gateway.definitions.handlers.output_contracts import Definition
from gateway.definitions.live.patterns import pattern_at, without_patterns
from gateway.domain.json_access import as_object, tokens_of
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.errors import DefinitionInvalid, Fault

_ADDRESS = {Family.TOOL: "name", Family.PROMPT: "name", Family.RESOURCE: "uri", Family.TEMPLATE: "uriTemplate"}
_VALIDATE: Mapping[Family, Callable[[object], Definition]] = {
    Family.TOOL: validate_tool_definition,
    Family.RESOURCE: validate_resource_definition,
    Family.TEMPLATE: validate_resource_template_definition,
    Family.PROMPT: validate_prompt_definition,
}
_DROPPABLE_MEMBERS = frozenset(("title", "icons", "_meta", "annotations", "mimeType", "size"))
"""Members that are dropped if they are invalid. Any other invalid member makes the gateway refuse the primitive."""
_SCHEMAS = ("inputSchema", "outputSchema")
_TEXTS = frozenset(("title", "description"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LenientDefinition:
    """A definition in the gateway's contract, and notices about what is missing in it."""

    wire: Mapping[str, object]
    notices: Sequence[str]


def read_definition(
    family: Family, remote: str, name: str, sent: Mapping[str, object], *, level: Safety
) -> LenientDefinition:
    """Return the definition that a source sent, with the name and the annotations that clients see.

    Raises:
        DefinitionInvalid: it has a fault that is not in an optional member or a pattern.
    """
    whole: Mapping[str, object] = _with_required_members(family, remote, name, sent, level=level)
    patterns: dict[str, None] = {}
    for _ in range(MAX_ROUNDS):
        try:
            wire = _VALIDATE[family](whole).to_wire()
        except DefinitionInvalid as wrong:
            whole = _without_faults(whole, wrong, patterns)
        else:
            shown = ", ".join(shorten(pattern, MAX_SHOWN_PATTERN_LENGTH) for pattern in patterns)
            reason = f"listed without the pattern {shown}, which cannot be checked in linear time and little memory"
            return LenientDefinition(wire=wire, notices=[reason] if patterns else [])
    raise DefinitionInvalid(f"its schemas have more than {len(patterns)} patterns that cannot be checked")


def _with_required_members(
    family: Family, remote: str, name: str, sent: Mapping[str, object], *, level: Safety
) -> dict[str, object]:
    """The definition with the members that the gateway's contract requires and the protocol does not."""
    whole = {_ADDRESS[family]: name, **_without_blank_texts(sent)}
    if isinstance(arguments := sent.get("arguments"), list):
        items = cast("list[object]", arguments)
        whole["arguments"] = [_without_blank_texts(one) if (one := as_object(each)) else each for each in items]
    if family is Family.TOOL:
        hints, schema = as_object(sent.get("annotations")) or {}, sent.get("inputSchema", {})
        title = hints.get("title")
        whole["annotations"] = explicit_annotations(hints, level)
        if "title" not in sent and isinstance(title, str) and len(title) <= MAX_TITLE_LENGTH and title.isprintable():
            whole["title"] = title
        if "description" not in whole:
            whole["description"] = remote
        members = as_object(schema)
        whole["inputSchema"] = schema if members is None else {"type": "object", "properties": {}, **members}
    elif family is not Family.PROMPT:
        whole.setdefault("name", remote[:MAX_TITLE_LENGTH])
    return whole


def _without_blank_texts(members: Mapping[str, object]) -> dict[str, object]:
    """The members without blank titles and descriptions, which servers send for undocumented functions."""
    return {
        name: value
        for name, value in members.items()
        if not (name in _TEXTS and isinstance(value, str) and not value.strip())
    }


def _without_faults(
    whole: Mapping[str, object], wrong: DefinitionInvalid, patterns: dict[str, None]
) -> Mapping[str, object]:
    """Return the definition without its invalid optional members, and without patterns that cannot be checked.

    Raises:
        DefinitionInvalid: there are other faults.
    """
    members = {member for fault in wrong.faults if (member := _member_of(fault)) in _DROPPABLE_MEMBERS}
    fresh = [
        pattern
        for fault in wrong.faults
        if _member_of(fault) in _SCHEMAS and (pattern := pattern_at(whole, fault.pointer)) is not None
    ]
    is_rest = len(fresh) < sum(_member_of(fault) not in _DROPPABLE_MEMBERS for fault in wrong.faults)
    if is_rest or not wrong.faults:
        raise wrong
    patterns.update(dict.fromkeys(fresh))
    rest = {name: value for name, value in whole.items() if name not in members}
    rest |= {name: without_patterns(rest[name], patterns) for name in _SCHEMAS if fresh and name in rest}
    keys = {tokens_of(fault.pointer)[1] for fault in wrong.faults if fault.pointer.startswith("/_meta/")}
    meta = as_object(whole.get("_meta")) or {}
    if keys and keys < meta.keys():  # other members of `_meta` stay
        rest["_meta"] = {name: value for name, value in meta.items() if name not in keys}
    return rest


def _member_of(fault: Fault) -> str:
    return fault.pointer.split("/")[1] if "/" in fault.pointer else ""
