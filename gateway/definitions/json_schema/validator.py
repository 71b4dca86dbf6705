"""Validators: compiled schemas whose checks are bounded before they begin, or metered, or left to a child process.

An upper bound of the work is computed first. A check of at most `MAX_LOOP_UNITS` units runs on the event loop. A check
with a higher bound runs there too, but metered: it ends after `METERED_UNITS` units of work that was really done. What
then remains is returned as `DeferredCheck`: the caller runs it in a child process with its own limits.

`jsonschema-rs` creates all violations before it returns the first; each contains a copy of the violating value. So
violations are collected only for values of at most 16 KiB and at most `MAX_COPIES` copies, by bound or metered. For
other values, `summarize_violations` finds the missing and wrong arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, cast

import msgspec
import structlog

from gateway.definitions.json_schema.coercion import readings
from gateway.definitions.json_schema.dialects import compile_argument, compile_schema
from gateway.definitions.json_schema.limits import (
    INLINE_BYTES,
    MAX_BYTES_READ,
    MAX_CONTAINERS_READ,
    MAX_COPIES,
    MAX_EXPLAINED_BYTES,
    MAX_IMPORTED_SCHEMAS,
    MAX_LOOP_UNITS,
    MAX_MEASURED,
    MAX_VALUES_READ,
)
from gateway.definitions.json_schema.metered_schema import MeteredSchema
from gateway.definitions.json_schema.tree import SchemaTree, TooLarge
from gateway.definitions.json_schema.violations import ArgumentChecks, list_faults, summarize_violations
from gateway.definitions.json_schema.work_bound import ENDLESS, UNKNOWN, WorkBound, work_of
from gateway.domain.json_text import decode_json
from gateway.domain.listed.output_schema import loose_output_schema
from gateway.errors import Fault

log = structlog.get_logger(__name__)

METERED_UNITS: Final = 500_000
"""Units of a metered check: at most 20 ms. It takes 5 to 20 times as long as the same check without the meter."""

_CHILD_UNITS: Final = 50_000_000
"""Units of the check of one argument in a child process, about a second."""

_INPUT, _OUTPUT = "inputSchema", "outputSchema"
_FILE_MARK = b'"contentEncoding":"base64"'
_NO_JSON = "is not JSON"
_CRASHED = "cannot be checked against its schema; the gateway's log has the reason"
_PANIC = "PanicException"
"""The name of the exception of a defect in `jsonschema-rs`, which is no `Exception`."""

_UNCHECKED = "cannot be checked here: that takes too long; send less in one call"


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
    """A check that is too expensive for the event loop; `instance` is the value as JSON.

    It may still be possible here after `validator.prepare`, otherwise it needs a child process.
    """

    validator: "Validator"
    instance: bytes


Checked: TypeAlias = tuple[Fault, ...] | DeferredCheck
"""The violations that a check has found, none for a conforming value; or the check, if it is too expensive here."""


class Validator:
    """A compiled schema with its work bound. It shares the JSON of the definition with the tool.

    In an input schema `format` is an annotation, because APIs accept more than their documents describe; otherwise
    formats are asserted.
    """

    __slots__ = (
        "_asserts_formats",
        "_compiled",
        "_free",
        "_metered",
        "has_files",
        "is_prepared",
        "member",
        "text",
        "work",
    )

    def __init__(self, text: bytes, member: str) -> None:
        self.text = text
        self.member = member
        schema = _read(text, member)
        self._asserts_formats = member != _INPUT
        self._compiled: CompiledSchema = compile_schema(schema, asserts_formats=self._asserts_formats)
        self.work = _work(schema)
        self._free = _free_size(self.work)
        self._metered: MeteredSchema | None = None
        self.is_prepared = False
        self.has_files = member == _INPUT and _FILE_MARK in text
        """True if an argument may be a file; then also `readings` of valid arguments count."""

    def check(self, instance: object) -> Checked:
        """Check a value."""
        try:
            raw = msgspec.json.encode(instance)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return (Fault(pointer="", reason=_NO_JSON),)
        try:  # no function of its own: every call comes here
            if len(raw) <= self._free or not self._is_dear(instance, raw):  # guard: check-budget-loop
                is_valid: bool | None = self._compiled.is_valid(instance)
            else:
                metered = self._meter()
                is_valid = None if metered is None else metered.is_valid(instance, METERED_UNITS)
            if is_valid:
                return ()
            return self._deferred(raw) if is_valid is None else self._explain(instance, raw)
        except ValueError:  # a value of Python that is no JSON, such as a set
            return (Fault(pointer="", reason=_NO_JSON),)
        except BaseException as error:  # guard: check-crash
            if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
                raise
            log.exception("check_failed")
            return (Fault(pointer="", reason=_CRASHED),)

    def check_text(self, raw: bytes) -> Checked:
        """Check a value given as JSON text, like `check`. JSON with too many values is not decoded here."""
        containers, values = _count(raw)
        is_large = len(raw) > MAX_BYTES_READ or values > MAX_VALUES_READ
        if is_large or containers > MAX_CONTAINERS_READ:  # guard: result-unread
            return self._deferred(raw)
        return self.check(decode_json(raw))

    def readings(self, arguments: Mapping[str, object]) -> Sequence[dict[str, object]]:
        """Return the values that the arguments can be read as, at most four; each has to be checked."""
        return readings(_read(self.text, self.member), arguments)

    def check_unbounded(self, instance: object, raw: bytes) -> tuple[Fault, ...]:
        """Return the violations without an estimate of the work; only for a child process that can be killed."""
        if self._compiled.is_valid(instance):
            return ()
        self.prepare()
        return self._explain(instance, raw, units=_CHILD_UNITS)

    def prepare(self) -> None:
        """Compile the metered schema, once; for a thread or a child process, because a large one takes up to 100 ms."""
        if self.is_prepared:
            return
        schema = _read(self.text, self.member)
        try:
            tree = SchemaTree(schema, limit=MAX_IMPORTED_SCHEMAS)
            self._metered = MeteredSchema(schema, tree, asserts_formats=self._asserts_formats)
        except (TooLarge, ValueError) as error:  # its checks run in child processes
            log.warning("schema_not_metered", reason=str(error)[:200])
        self.is_prepared = True

    def _meter(self) -> MeteredSchema | None:
        """Return the metered schema; None if it cannot be compiled here."""
        if not self.is_prepared and len(self.text) <= INLINE_BYTES:
            self.prepare()
        return self._metered

    def _deferred(self, raw: bytes) -> DeferredCheck:
        return DeferredCheck(validator=self, instance=raw)

    def is_bounded(self, instance: object) -> bool:
        """True if the work of a check is bounded before it begins; otherwise it is metered."""
        return not self._is_dear(instance, msgspec.json.encode(instance))

    def _is_dear(self, instance: object, raw: bytes) -> bool:
        return len(raw) > self._free and self._units(instance, raw) > MAX_LOOP_UNITS

    def _units(self, instance: object, raw: bytes) -> int:
        containers, values = _count(raw)
        depth = 1
        if self.work.growth > 1:
            depth = depth_of(instance) if containers <= MAX_MEASURED else containers
        return self.work.units(containers=containers, values=values, size=len(raw), depth=min(depth, ENDLESS))

    def _explain(self, instance: object, raw: bytes, *, units: int = METERED_UNITS) -> tuple[Fault, ...]:
        schema = _read(self.text, self.member)
        metered = self._meter()
        is_small = len(raw) <= MAX_EXPLAINED_BYTES  # guard: explain-size
        if self._is_dear(instance, raw):
            checks: ArgumentChecks | None = None if metered is None else _MeteredArguments(metered, units)
        else:
            checks = _PlainArguments(schema, self._copies, asserts_formats=self._asserts_formats)
            if is_small and self._copies(instance, raw) <= MAX_COPIES:  # guard: explain-copies
                return list_faults(self._compiled.iter_errors(instance), schema)
        if is_small and metered is not None:
            found = metered.violations(instance, MAX_COPIES)
            if found is not None:
                return list_faults(found, metered.schema)
        return summarize_violations(schema, instance, checks)

    def _copies(self, instance: object, raw: bytes) -> int:
        _, values = _count(raw)
        return self.work.copies(values=values, depth=depth_of(instance))


class _PlainArguments:
    """Checks of arguments of a value whose check is bounded; the bounds of the whole schema also hold for a part."""

    def __init__(
        self, schema: Mapping[str, object], copies: Callable[[object, bytes], int], *, asserts_formats: bool
    ) -> None:
        self._schema = schema
        self._copies = copies
        self._asserts_formats = asserts_formats

    def is_valid(self, name: str, value: object) -> bool:
        is_valid: bool = self._compile(name).is_valid(value)
        return is_valid

    def _compile(self, name: str) -> Any:
        return compile_argument(self._schema, name, asserts_formats=self._asserts_formats)

    def faults(self, name: str, value: object) -> Sequence[Fault] | None:
        raw = msgspec.json.encode(value)
        if len(raw) > MAX_EXPLAINED_BYTES or self._copies(value, raw) > MAX_COPIES:
            return None
        return list_faults(self._compile(name).iter_errors(value), self._schema, at=(name,))


class _MeteredArguments:
    """Checks of arguments with a metered schema."""

    def __init__(self, metered: MeteredSchema, units: int) -> None:
        self._metered = metered
        self._units = units

    def is_valid(self, name: str, value: object) -> bool | None:
        return self._metered.is_valid(value, self._units, argument=name)

    def faults(self, name: str, value: object) -> Sequence[Fault] | None:
        if len(msgspec.json.encode(value)) > MAX_EXPLAINED_BYTES:
            return None
        found = self._metered.violations(value, MAX_COPIES, argument=name)
        return None if found is None else list_faults(found, self._metered.schema, at=(name,))


def compile_input(definition: bytes) -> Validator:
    """Compile the input schema of a listed definition."""
    return Validator(definition, _INPUT)


def compile_output(definition: bytes) -> Validator:
    """Compile the output schema of a definition."""
    return Validator(definition, _OUTPUT)


def compile_loose_output(definition: bytes) -> Validator:
    """Compile the output schema of an imported operation in the form in which it is listed."""
    loose = loose_output_schema(_read(definition, _OUTPUT))
    return Validator(msgspec.json.encode({_OUTPUT: loose}), _OUTPUT)


def find_faults(validator: Validator, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
    """Return the violations, at most ten. A check too expensive for the event loop counts as one."""
    found = validator.check(arguments)
    if isinstance(found, DeferredCheck):
        return (Fault(pointer="", reason=_UNCHECKED),)
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
        return work_of(SchemaTree(schema, limit=MAX_IMPORTED_SCHEMAS))
    except TooLarge:
        return UNKNOWN
    except Exception:  # the tool works: without a bound its checks are metered
        log.exception("schema_not_counted")
        return UNKNOWN


def _read(text: bytes, member: str) -> dict[str, object]:
    definition: dict[str, dict[str, object]] = decode_json(text)
    return definition[member]
