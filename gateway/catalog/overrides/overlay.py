"""Overrides of imported tools: the members of an override replace those of the generated definition.

Overrides are applied when a catalog is composed or listed, and when safety levels are computed, never during a call. A
tool without an override keeps the bytes of its definition.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec

from gateway.domain.json_access import unescape_token
from gateway.domain.json_text import decode_json, decode_object
from gateway.domain.overrides import LoadedOperation, Override, given_members
from gateway.domain.tools import FULL_INPUT_META, Tool

_DEFS_PREFIX = "#/$defs/"
_RETURNS = re.compile(r"\n\nReturns: [^\n]*(?=(?:\n\n[^\n]*)?\Z)")
"""The line about the response in a generated description: the last paragraph, or the one before a note."""

_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


def apply_overrides(operations: Sequence[LoadedOperation]) -> Sequence[LoadedOperation]:
    """The enabled operations, each with its effective tool."""
    return [
        one if one.override is None else replace(one, tool=overlay(one.tool, one.override))
        for one in operations
        if is_enabled(one)
    ]


def is_enabled(operation: LoadedOperation) -> bool:
    """True unless an override disables the operation."""
    return operation.override is None or operation.override.enabled is not False


def is_shown(operation: LoadedOperation) -> bool:
    """True if clients see the enabled operation as a tool."""
    return operation.is_listed and not is_hidden(operation)  # guard: hidden-tool


def is_hidden(operation: LoadedOperation) -> bool:
    """True if an override hides the operation from lists."""
    return operation.override is not None and operation.override.hidden is True


def overlay(tool: Tool, changes: Override) -> Tool:
    """The effective tool. Pinned names that are not (or no longer) arguments of the operation are ignored."""
    arguments = arguments_of(tool.definition) if changes.pinned else frozenset[str]()
    pinned = {name: value for name, value in (changes.pinned or {}).items() if name in arguments}
    changed = replace(
        tool,
        definition=_define(tool, changes, frozenset(pinned)),
        pinned=_encode(pinned) if pinned else b"",
        result=_encode(given_members(changes.result)) if changes.result else b"",
    )
    if changes.safety is None:
        return changed
    method = tool.identity.partition(" ")[0]
    reason = f"declared by an override; its method {method} implies {tool.safety}"
    return replace(changed, safety=changes.safety, safety_reasons=(reason,))


def arguments_of(definition: bytes) -> frozenset[str]:
    """The names of a tool's arguments."""
    schema: dict[str, Any] = decode_json(_decode(definition)["inputSchema"])
    return frozenset(cast("Mapping[str, object]", schema.get("properties", {})))


def without_pinned(schema: bytes, pinned: bytes) -> bytes:
    """The full input schema without the pinned arguments, which the listed schema omits as well."""
    if not pinned:
        return schema
    names = frozenset(msgspec.json.decode(pinned, type=dict[str, msgspec.Raw]))
    return _encode(_without(decode_json(schema), names))  # guard: pinned-argument-validated


def _define(tool: Tool, changes: Override, pinned: frozenset[str]) -> bytes:
    """The listed definition. Members that the override does not set keep their exact bytes."""
    stored = _decode(tool.definition)
    members: dict[str, object] = {"name": tool.name}
    if "title" in stored or changes.title is not None:
        members["title"] = stored.get("title") if changes.title is None else changes.title
    members |= {name: value for name, value in stored.items() if name not in members}
    if changes.description is not None:
        members["description"] = changes.description
    if tool.is_shortened and FULL_INPUT_META in _decode(stored.get("_meta", b"{}")):  # a document may contain the word
        members["description"] = _with_note(tool.name, stored, changes.description)
    if changes.result and changes.description is None and "description" in stored:
        members["description"] = _without_returns(members["description"])
    if pinned:  # guard: pinned-argument-listed
        members["inputSchema"] = _without(decode_json(stored["inputSchema"]), pinned)
    if changes.annotations:
        known = stored.get("annotations", msgspec.Raw(b"{}"))
        members["annotations"] = {**decode_object(known), **given_members(changes.annotations)}
    if changes.result:
        members.pop("outputSchema", None)  # the output schema describes results before the override selects parts
    return _encode(members)


def _without_returns(description: object) -> str:
    """The description without the line about the response, which the override changes."""
    text = msgspec.json.decode(description, type=str) if isinstance(description, msgspec.Raw) else str(description)
    return _RETURNS.sub("", text)


def _with_note(name: str, stored: Mapping[str, msgspec.Raw], description: str | None) -> str:
    """The description of a shortened tool. The note about its details, the last paragraph, names the effective tool."""
    listed, document_name = (msgspec.json.decode(stored[member], type=str) for member in ("description", "name"))
    words, _, note = listed.rpartition("\n\n")
    note = note.replace(f'"{document_name}"', f'"{name}"')
    return f"{words if description is None else description}\n\n{note}"


def _without(schema: dict[str, Any], pinned: frozenset[str]) -> dict[str, Any]:
    """The input schema without these arguments, and without the `$defs` that only they reference."""
    properties: dict[str, object] = schema.get("properties", {})
    reduced = schema | {"properties": {name: value for name, value in properties.items() if name not in pinned}}
    if "required" in reduced:
        reduced["required"] = [name for name in reduced["required"] if name not in pinned]
        if not reduced["required"]:
            del reduced["required"]
    shared: dict[str, object] | None = reduced.pop("$defs", None)
    if shared is not None:
        needed = _referenced_names(reduced, shared)
        if remaining_defs := {name: value for name, value in shared.items() if name in needed}:
            reduced["$defs"] = remaining_defs
    return reduced


def _referenced_names(schema: object, shared: Mapping[str, object]) -> frozenset[str]:
    """Names of the `$defs` that this schema references, directly or through others; all if a name is unknown."""
    found: set[str] = set()
    pending = list(_references(schema))
    while pending:
        name = pending.pop()
        if name not in shared:
            return frozenset(shared)
        if name not in found:
            found.add(name)
            pending += _references(shared[name])
    return frozenset(found)


def _references(value: object) -> Iterator[str]:
    """The `$defs` names in all strings that may be references."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            pending += cast("dict[str, object]", part).values()
        elif isinstance(part, list):
            pending += cast("list[object]", part)
        elif isinstance(part, str) and part.startswith(_DEFS_PREFIX):
            yield unescape_token(part.removeprefix(_DEFS_PREFIX).partition("/")[0])
