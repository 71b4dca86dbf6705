"""Validation of overrides: each member separately, and pinned arguments against the operation's input schema."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from gateway.catalog.overrides.limits import MAX_NAMED, MAX_PINNED_BYTES
from gateway.definitions.contract.limits import MAX_TOOL_NAME_LENGTH
from gateway.definitions.contract.metadata import read_description, read_title
from gateway.definitions.contract.tools import HINTS
from gateway.definitions.field_reader import Faults, FieldReader
from gateway.definitions.handlers.requests import read_result
from gateway.definitions.json_schema.validator import compile_input, find_faults
from gateway.definitions.limits import MAX_FAULTS
from gateway.domain.json_access import point
from gateway.domain.json_text import decode_json
from gateway.domain.overrides import OverrideFields
from gateway.errors import Fault, ToolValidationError

_NAME = re.compile(r"[A-Za-z0-9_.-]+")
_TEXTS = ("name", "title", "description")
_OBJECTS = ("annotations", "result")


def validate_override(changes: OverrideFields, definition: bytes) -> OverrideFields:
    """The override in stored form, without members that change nothing.

    Raises:
        ToolValidationError: the override does not fit the tool of this definition; the faults list the first 20
            invalid members.
    """
    faults = [*_faults_of_members(changes), *pinned_faults(definition, changes.pinned or {})]
    if faults:
        raise ToolValidationError(f"{faults[0].pointer}: {faults[0].reason}", faults=faults[:MAX_FAULTS])
    return replace(
        changes,
        hidden=changes.hidden or None,
        enabled=None if changes.enabled is not False else False,
        annotations=changes.annotations or None,
        pinned=changes.pinned or None,
        result=changes.result or None,
    )


def pinned_faults(definition: bytes, pinned: Mapping[str, object]) -> Sequence[Fault]:
    """Faults of pinned arguments: more than 64 KiB, names that the tool lacks, or values that its schema refuses."""
    if not pinned:
        return ()
    try:
        size = len(msgspec.json.encode(dict(pinned)))
    except (TypeError, ValueError, RecursionError):
        return [Fault(pointer="/pinned", reason="cannot be written as JSON")]
    if size > MAX_PINNED_BYTES:
        return [Fault(pointer="/pinned", reason=f"is larger than {MAX_PINNED_BYTES} bytes")]
    schema: dict[str, Any] = decode_json(definition)["inputSchema"]
    known: dict[str, object] = schema.get("properties", {})
    argument_names = ", ".join(list(known)[:MAX_NAMED]) or "none"
    missing = [name for name in pinned if name not in known]
    if missing:
        reason = f"the operation has no such argument; its arguments: {argument_names}"
        return [Fault(pointer=point("pinned", name), reason=reason) for name in missing[:MAX_FAULTS]]
    alone = {name: value for name, value in schema.items() if name != "required"}
    validator = compile_input(msgspec.json.encode({"inputSchema": alone}))
    return [replace(fault, pointer=f"/pinned{fault.pointer}") for fault in find_faults(validator, pinned)]


def _faults_of_members(changes: OverrideFields) -> Sequence[Fault]:
    members = {name: getattr(changes, name) for name in (*_TEXTS, *_OBJECTS)}
    faults = Faults()
    reader = FieldReader(
        {name: value for name, value in members.items() if value is not None}, tuple(members), where="", faults=faults
    )
    name = reader.string("name", max_length=MAX_TOOL_NAME_LENGTH)
    if name is not None and not _NAME.fullmatch(name):
        reader.refuse("name", "must consist of letters, digits and the characters _ . -")
    read_title(reader)
    read_description(reader)
    read_result(reader)
    hints = reader.nested("annotations", HINTS)
    if hints is not None:
        for hint in HINTS:
            hints.flag(hint)
    try:
        faults.raise_as(ToolValidationError, "override")
    except ToolValidationError as error:
        return error.faults
    return ()
