"""Violations of a refused value, at most ten: those of `jsonschema-rs`, or only the missing and wrong arguments."""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import msgspec

from gateway.definitions.json_schema.explanations import explain
from gateway.definitions.json_schema.limits import (
    MAX_FAULTS,
    MAX_NEAREST,
    MAX_REASON_LENGTH,
    MAX_SEARCH_CPU_S,
    MAX_TRIED,
)
from gateway.definitions.json_schema.nearest_faults import nearest_faults
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import Fault

_UNEXPLAINED = "does not match its schema; it is too large or too complex to locate the error"


def list_faults(errors: Iterable[Any], schema: Mapping[str, object], *, at: tuple[str, ...] = ()) -> tuple[Fault, ...]:
    """Return the first ten faults of these violations, which `jsonschema-rs` found."""
    first = islice(errors, MAX_FAULTS)
    return tuple(islice((fault for error in first for fault in explain(error, schema, at=at)), MAX_FAULTS))


class ArgumentChecks(Protocol):
    """Checks of single arguments against their part of a schema."""

    def is_valid(self, name: str, value: object) -> bool | None:
        """True if the value of the argument conforms; None if that cannot be found here."""
        ...

    def faults(self, name: str, value: object) -> Sequence[Fault] | None:
        """Return the faults of a wrong argument; None if its violations cannot be collected here."""
        ...


def summarize_violations(
    schema: Mapping[str, object], instance: object, checks: ArgumentChecks | None
) -> tuple[Fault, ...]:
    """Return missing and wrong declared arguments, at most ten. At most 20 arguments are checked.

    Where violations cannot be collected, or without `checks`, a walk finds faults (`nearest_faults`).
    """
    members = as_object(instance) or {}
    wrong = () if checks is None else _wrong(schema, members, checks)
    found = tuple(islice((*_missing(schema, members), *wrong), MAX_FAULTS))
    if checks is None or not found:
        found = tuple(islice(nearest_faults(schema, instance), MAX_FAULTS)) or found
    return found or (Fault(pointer="", reason=_UNEXPLAINED),)


def _missing(schema: Mapping[str, object], members: Mapping[str, object]) -> Iterable[Fault]:
    names = (str(name) for name in as_list(schema.get("required")) or () if name not in members)
    return (Fault(pointer="", reason=f'"{_bounded(name)}" is a required property') for name in names)


def _wrong(schema: Mapping[str, object], members: Mapping[str, object], checks: ArgumentChecks) -> Sequence[Fault]:
    known = as_object(schema.get("properties")) or {}
    tried = list(islice((name for name in members if name in known), MAX_TRIED))
    found: dict[str, Sequence[Fault]] = {}
    until = time.thread_time() + MAX_SEARCH_CPU_S
    # Small arguments first: one that takes the whole time hides no fault of another.
    for name in sorted(tried, key=lambda each: len(msgspec.json.encode(members[each]))):
        if checks.is_valid(name, members[name]) is False:
            found[name] = _faults_of(schema, name, members[name], checks)
        if time.thread_time() > until:
            break
    return [fault for name in tried for fault in found.get(name, ())]


def _faults_of(schema: Mapping[str, object], name: str, value: object, checks: ArgumentChecks) -> Sequence[Fault]:
    faults = checks.faults(name, value)
    if faults is not None:
        return faults
    nearest = tuple(islice(nearest_faults(schema, value, within=(name,)), MAX_NEAREST))
    return nearest or (Fault(pointer=point(name), reason=_UNEXPLAINED),)


def _bounded(name: str) -> str:
    return name if len(name) <= MAX_REASON_LENGTH else f"{name[: MAX_REASON_LENGTH - 1]}…"
