"""Validation of overrides: texts for models, and pinned arguments against the operation's input schema."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from gateway.catalog.overrides.limits import MAX_NAMED, MAX_PINNED_BYTES
from gateway.definitions.contract.metadata import read_description, read_title
from gateway.definitions.field_reader import Faults, FieldReader
from gateway.definitions.json_schema.validator import compile_input, find_faults
from gateway.definitions.limits import MAX_FAULTS
from gateway.domain.json_access import point
from gateway.domain.json_text import decode_json
from gateway.domain.overrides import Hints, Override, ResultParts, given_members
from gateway.errors import Fault, ToolValidationError

P = TypeVar("P", Hints, ResultParts)

_TEXTS = ("title", "description")


def validate_override(one: Override, definition: bytes) -> Override:
    """The override in stored form.

    Raises:
        ToolValidationError: the override does not fit the tool of this definition; the faults list the first 20
            invalid members.
    """
    faults = [*_faults_of_texts(one), *pinned_faults(definition, one.pinned or {})]
    if faults:
        raise ToolValidationError(f"{faults[0].pointer}: {faults[0].reason}", faults=faults[:MAX_FAULTS])
    return normalise(one)


def normalise(one: Override) -> Override:
    """The override in stored form: members that change nothing are null."""
    return replace(
        one,
        hidden=one.hidden or None,
        enabled=None if one.enabled is not False else False,
        annotations=_or_none(one.annotations),
        pinned=one.pinned or None,
        result=_or_none(one.result),
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


def _faults_of_texts(one: Override) -> Sequence[Fault]:
    texts = {name: text for name in _TEXTS if (text := getattr(one, name)) is not None}
    faults = Faults()
    reader = FieldReader(texts, _TEXTS, where="", faults=faults)
    read_title(reader)
    read_description(reader)
    try:
        faults.raise_as(ToolValidationError, "override")
    except ToolValidationError as error:
        return error.faults
    return ()


def _or_none(parts: P | None) -> P | None:
    """The parts, unless all are null."""
    return parts if given_members(parts) else None
