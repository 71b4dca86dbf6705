"""Violations of a refused value, at most ten: those of `jsonschema-rs`, or only the missing and wrong arguments."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Protocol
from urllib.parse import quote

import jsonschema_rs

from gateway.definitions.json_schema.dialects import dialect_of
from gateway.definitions.json_schema.explanations import MAX_REASON_LENGTH, explain
from gateway.domain.json_access import as_list, as_object, point
from gateway.errors import Fault

MAX_FAULTS = 10

_WHOLE = "urn:gateway:schema"
_MAX_TRIED = 20
_MAX_CPU_S = 0.01
"""CPU time of the thread after which the search stops and returns the faults found so far.

Compiling the schema of one argument may take milliseconds. CPU time makes the result independent of the machine's load.
"""
_UNEXPLAINED = "does not match its schema; it is too large or too complex to locate the error"


class _Collecting(Protocol):
    def iter_errors(self, instance: object) -> Any: ...


def all_violations(
    compiled: _Collecting, instance: object, schema: Mapping[str, object], *, at: tuple[str, ...] = ()
) -> tuple[Fault, ...]:
    """Return the first ten violations that `jsonschema-rs` finds; the caller has checked the value's size."""
    errors = islice(compiled.iter_errors(instance), MAX_FAULTS)
    return tuple(islice((fault for error in errors for fault in explain(error, schema, at=at)), MAX_FAULTS))


def summarize_violations(
    schema: Mapping[str, object], instance: object, *, is_explained_whole: Callable[[object], bool]
) -> tuple[Fault, ...]:
    """Return missing and wrong declared arguments, at most ten.

    At most 20 arguments are checked. Violations within an argument are collected only if `is_explained_whole` returns
    True for it.
    """
    members = as_object(instance) or {}
    found = [*_missing(schema, members)][:MAX_FAULTS]
    for fault in _wrong(schema, members, is_explained_whole):
        if len(found) == MAX_FAULTS:
            break
        found.append(fault)
    return tuple(found) or (Fault(pointer="", reason=_UNEXPLAINED),)


def _missing(schema: Mapping[str, object], members: Mapping[str, object]) -> Iterable[Fault]:
    names = (str(name) for name in as_list(schema.get("required")) or () if name not in members)
    return (Fault(pointer="", reason=f'"{_bounded(name)}" is a required property') for name in names)


def _wrong(
    schema: Mapping[str, object], members: Mapping[str, object], is_explained_whole: Callable[[object], bool]
) -> Iterator[Fault]:
    known = as_object(schema.get("properties")) or {}
    dialect = dialect_of(schema)
    registry = jsonschema_rs.Registry([(_WHOLE, dict(schema))], draft=dialect.draft)
    until = time.thread_time() + _MAX_CPU_S
    for name in islice((name for name in members if name in known), _MAX_TRIED):
        part = dialect.compile({"$ref": f"{_WHOLE}#{quote(point('properties', name))}"}, registry=registry)
        if not part.is_valid(members[name]):
            if is_explained_whole(members[name]):
                yield from all_violations(part, members[name], schema, at=(name,))
            else:
                yield Fault(pointer=point(name), reason=_UNEXPLAINED)
        if time.thread_time() > until:
            return


def _bounded(name: str) -> str:
    return name if len(name) <= MAX_REASON_LENGTH else f"{name[: MAX_REASON_LENGTH - 1]}…"
