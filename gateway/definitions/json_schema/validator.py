"""Validators: compiled schemas with an upper bound on the work of a check, computed before the check begins.

A check of at most `MAX_LOOP_UNITS` units runs on the event loop. A larger check is returned as `DeferredCheck`: the
caller runs it in a child process with its own limits, or refuses it above `MAX_CHILD_UNITS` units.

`jsonschema-rs` creates all violations before it returns the first; each contains a copy of the violating value. So
`Validator` collects violations only for values of at most 16 KiB and at most `MAX_COPIES` copies. For other values,
`summarize_violations` finds the missing and wrong arguments.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

from gateway.definitions.json_schema.dialects import compile_schema
from gateway.definitions.json_schema.tree import SchemaTree, TooLarge
from gateway.definitions.json_schema.violations import all_violations, summarize_violations
from gateway.definitions.json_schema.work_bound import ENDLESS, UNKNOWN, WorkBound, work_of
from gateway.domain.json_text import decode_json
from gateway.errors import Fault

MAX_LOOP_UNITS = 1_000_000
"""Units that may be spent on the event loop: at most 40 ms, and 2 to 15 ms for most schemas."""

MAX_CHILD_UNITS = 200_000_000
"""Units above which a check is refused: seconds of work, which the CPU limit of the child process would interrupt."""

MAX_COPIES = 40_000
"""Limit on the values that `jsonschema-rs` copies into violations; each copy costs about 180 bytes and 0.5 µs."""

MAX_EXPLAINED_BYTES = 16 * 1024
"""Limit on the bytes of JSON of a value whose violations are collected."""

MAX_CONTAINERS_READ = 50_000
MAX_VALUES_READ = 200_000
MAX_BYTES_READ = 1024 * 1024
"""Limits on JSON text that is decoded on the event loop, which takes up to 20 ms."""

_MAX_SCHEMAS = 20_000
_MAX_MEASURED = 2_000
_UNCHECKED = (
    "is too large to be validated against this schema: about {units} steps (limit {limit}); send less data in one "
    "call, or simplify the schema"
)


class CompiledSchema(Protocol):
    """A schema compiled by `jsonschema-rs`."""

    def is_valid(self, instance: object) -> bool:
        """True if the instance conforms."""
        ...

    def iter_errors(self, instance: object) -> Any:
        """Return all violations; all are created before the first is returned."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredCheck:
    """A check that is too expensive for the event loop: the definition and the value, as JSON."""

    definition: bytes
    member: str
    instance: bytes
    units: int

    @property
    def refusal(self) -> Fault | None:
        """The fault that refuses a check beyond `MAX_CHILD_UNITS`; None if a child process may run it."""
        if self.units <= MAX_CHILD_UNITS:  # guard: check-budget-child
            return None
        return Fault(pointer="", reason=_UNCHECKED.format(units=min(self.units, ENDLESS), limit=MAX_CHILD_UNITS))


class Validator:
    """A compiled schema with its work bound. It shares the JSON of the definition with the tool."""

    __slots__ = ("_compiled", "_free", "_member", "_text", "work")

    def __init__(self, text: bytes, member: str) -> None:
        self._text = text
        self._member = member
        schema = _read(text, member)
        self._compiled: CompiledSchema = compile_schema(schema)
        self.work = _work(schema)
        self._free = _free_size(self.work)

    def check(self, instance: object) -> tuple[Fault, ...] | DeferredCheck:
        """Return the violations, empty for a conforming value; or `DeferredCheck` if the check is too expensive
        here.
        """
        try:
            raw = msgspec.json.encode(instance)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return (Fault(pointer="", reason="is not JSON"),)
        if len(raw) > self._free:
            units = self._units(instance, raw)
            if units > MAX_LOOP_UNITS:  # guard: check-budget-loop
                return DeferredCheck(definition=self._text, member=self._member, instance=raw, units=units)
        if self._compiled.is_valid(instance):
            return ()
        return self._explain(instance, raw)

    def check_text(self, raw: bytes) -> tuple[Fault, ...] | DeferredCheck:
        """Check a value given as JSON text, like `check`. JSON with too many values is not decoded here."""
        containers, values = _count(raw)
        is_large = len(raw) > MAX_BYTES_READ or values > MAX_VALUES_READ
        if is_large or containers > MAX_CONTAINERS_READ:  # guard: result-unread
            units = self.work.units(containers=containers, values=values, size=len(raw), depth=containers)
            return DeferredCheck(definition=self._text, member=self._member, instance=raw, units=units)
        return self.check(decode_json(raw))

    def check_unbounded(self, instance: object, raw: bytes) -> tuple[Fault, ...]:
        """Return the violations without an estimate of the work; only for a child process that can be killed."""
        return () if self._compiled.is_valid(instance) else self._explain(instance, raw)

    def _units(self, instance: object, raw: bytes) -> int:
        containers, values = _count(raw)
        depth = 1
        if self.work.growth > 1:
            depth = depth_of(instance) if containers <= _MAX_MEASURED else containers
        return self.work.units(containers=containers, values=values, size=len(raw), depth=min(depth, ENDLESS))

    def _explain(self, instance: object, raw: bytes) -> tuple[Fault, ...]:
        schema = _read(self._text, self._member)
        if self._is_explained_whole(instance, raw):
            return all_violations(self._compiled, instance, schema)
        return summarize_violations(schema, instance, is_explained_whole=self._is_small)

    def _is_small(self, part: object) -> bool:
        """True if the violations of one argument can be collected; the whole schema's bound also holds for a part."""
        return self._is_explained_whole(part, msgspec.json.encode(part))

    def _is_explained_whole(self, instance: object, raw: bytes) -> bool:
        if len(raw) > MAX_EXPLAINED_BYTES:  # guard: explain-size
            return False
        _, values = _count(raw)
        return self.work.copies(values=values, depth=depth_of(instance)) <= MAX_COPIES  # guard: explain-copies


def compile_input(definition: bytes) -> Validator:
    """Compile the input schema of a listed definition."""
    return Validator(definition, "inputSchema")


def compile_output(definition: bytes) -> Validator:
    """Compile the output schema of a listed definition."""
    return Validator(definition, "outputSchema")


def find_faults(validator: Validator, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
    """Return the violations, at most ten. A check too expensive for the event loop counts as one."""
    found = validator.check(arguments)
    if isinstance(found, DeferredCheck):
        return (Fault(pointer="", reason=_UNCHECKED.format(units=min(found.units, ENDLESS), limit=MAX_LOOP_UNITS)),)
    return found


def depth_of(value: object) -> int:
    """Nesting depth of lists and objects, counted level by level, without recursion."""
    depth = 0
    level: list[object] = [value] if isinstance(value, dict | list | tuple) else []
    while level:
        depth += 1
        inside: list[object] = []
        for part in level:
            held = cast("Mapping[str, object]", part).values() if isinstance(part, dict) else part
            inside += [one for one in cast("Sequence[object]", held) if isinstance(one, dict | list | tuple)]
        level = inside
    return depth


def _count(raw: bytes) -> tuple[int, int]:
    """Return upper bounds of the number of containers and of all values: punctuation inside strings is counted too."""
    containers = raw.count(b"{") + raw.count(b"[")
    return containers, containers + raw.count(b",") + 1


def _free_size(work: WorkBound) -> int:
    """Return the size in bytes up to which any value costs at most `MAX_LOOP_UNITS`; negative if work grows with
    depth.
    """
    if work.growth > 1:
        return -1
    each = 64 * (work.load.container + work.load.plain) + work.load.byte
    return 64 * MAX_LOOP_UNITS // max(1, each) - 2


def _work(schema: Mapping[str, object]) -> WorkBound:
    try:
        return work_of(SchemaTree(schema, limit=_MAX_SCHEMAS))
    except TooLarge:
        return UNKNOWN


def _read(text: bytes, member: str) -> dict[str, object]:
    definition: dict[str, dict[str, object]] = decode_json(text)
    return definition[member]
