"""Validators: a schema compiled, with the most that checking and explaining can take known before either begins.

Three bounds, in this order. A value that takes at most `IN_LOOP` units is checked at once. One that takes more is
handed back as `Costly`, for a child process with limits of its own. One beyond `IN_CHILD` is refused unchecked.

`jsonschema-rs` makes every violation before it returns the first, each with a copy of the value that it is about. So it
explains only values of at most 16 KiB whose violations hold few copies; for all others, `violations` says which
argument is wrong.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import msgspec

from gateway.definitions.json_schema.dialects import compile_schema
from gateway.definitions.json_schema.tree import SchemaTree, TooLarge
from gateway.definitions.json_schema.violations import tell_all, tell_roughly
from gateway.definitions.json_schema.work_bound import ENDLESS, UNKNOWN, WorkBound, work_of
from gateway.errors import Fault

IN_LOOP = 1_000_000
"""Units that are spent on the event loop: at most 40 ms, 2 to 15 for most schemas."""

IN_CHILD = 200_000_000
"""Units beyond which nothing is tried: seconds of work, which its limit of CPU time would break off."""

MOST_COPIES = 40_000
"""Values that the violations of one explanation may copy: about 180 bytes and 0.5 µs each."""

LARGEST_TOLD = 16 * 1024
"""Bytes of a value that violations are collected of."""

MOST_CONTAINERS_READ = 50_000
MOST_VALUES_READ = 200_000
"""Largest JSON that is decoded on the event loop; 20 ms."""

_MOST_SCHEMAS = 20_000
_MOST_MEASURED = 2_000
_UNCHECKED = (
    "is too large for this schema to be checked: it may take about {units} steps, and at most {most} are made;"
    " send less in one call, or have the schema simplified"
)


class CompiledSchema(Protocol):
    """A schema as `jsonschema-rs` compiles it."""

    def is_valid(self, instance: object) -> bool:
        """True if the instance conforms."""
        ...

    def iter_errors(self, instance: object) -> Any:
        """Every violation, all made before the first is returned."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Costly:
    """A check that is too dear for the event loop: the definition and the value, as JSON."""

    definition: bytes
    member: str
    instance: bytes
    units: int

    @property
    def refusal(self) -> Fault | None:
        """The refusal of a check beyond every bound; None when a child process may run it."""
        if self.units <= IN_CHILD:
            return None
        return Fault(pointer="", reason=_UNCHECKED.format(units=min(self.units, ENDLESS), most=IN_CHILD))


class Validator:
    """A compiled schema. It keeps the definition's text, which the tool has anyway, and its work."""

    __slots__ = ("_compiled", "_free", "_member", "_text", "work")

    def __init__(self, text: bytes, member: str) -> None:
        self._text = text
        self._member = member
        schema = _read(text, member)
        self._compiled: CompiledSchema = compile_schema(schema)
        self.work = _work(schema)
        self._free = _free_size(self.work)

    def check(self, instance: object) -> tuple[Fault, ...] | Costly:
        """The violations, none for a value that conforms; or the check itself, where it is too dear to be made here."""
        try:
            raw = msgspec.json.encode(instance)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return (Fault(pointer="", reason="is not JSON"),)
        if len(raw) > self._free:
            units = self._units(instance, raw)
            if units > IN_LOOP:
                return Costly(definition=self._text, member=self._member, instance=raw, units=units)
        if self._compiled.is_valid(instance):
            return ()
        return self._explain(instance, raw)

    def check_text(self, raw: bytes) -> tuple[Fault, ...] | Costly:
        """The same for a value as JSON, which is not even read here when it has very many parts."""
        containers, values = _count(raw)
        if containers > MOST_CONTAINERS_READ or values > MOST_VALUES_READ:
            units = self.work.units(containers=containers, values=values, size=len(raw), depth=containers)
            return Costly(definition=self._text, member=self._member, instance=raw, units=units)
        return self.check(msgspec.json.decode(raw))

    def examine(self, instance: object, raw: bytes) -> tuple[Fault, ...]:
        """The violations, whatever they cost: for a process that can be killed."""
        return () if self._compiled.is_valid(instance) else self._explain(instance, raw)

    def _units(self, instance: object, raw: bytes) -> int:
        containers, values = _count(raw)
        depth = 1
        if self.work.growth > 1:
            depth = depth_of(instance) if containers <= _MOST_MEASURED else containers
        return self.work.units(containers=containers, values=values, size=len(raw), depth=min(depth, ENDLESS))

    def _explain(self, instance: object, raw: bytes) -> tuple[Fault, ...]:
        if self._is_told_whole(instance, raw):
            return tell_all(self._compiled, instance)
        return tell_roughly(_read(self._text, self._member), instance, is_told_whole=self._is_small)

    def _is_small(self, part: object) -> bool:
        """True if the violations of one argument can be collected; a part of a schema costs no more than all of it."""
        return self._is_told_whole(part, msgspec.json.encode(part))

    def _is_told_whole(self, instance: object, raw: bytes) -> bool:
        if len(raw) > LARGEST_TOLD:
            return False
        _, values = _count(raw)
        return self.work.copies(values=values, depth=depth_of(instance)) <= MOST_COPIES


def compile_input(definition: bytes) -> Validator:
    """The validator of a listed definition's input schema, in its own dialect (patterns linear-time, offline)."""
    return Validator(definition, "inputSchema")


def compile_output(definition: bytes) -> Validator:
    """The validator of a listed definition's output schema."""
    return Validator(definition, "outputSchema")


def find_faults(validator: Validator, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
    """The violations, at most ten; a check that is too dear for the event loop is one, too."""
    found = validator.check(arguments)
    if isinstance(found, Costly):
        return (Fault(pointer="", reason=_UNCHECKED.format(units=min(found.units, ENDLESS), most=IN_LOOP)),)
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
    """Lists and objects, and values of any kind, at most: what stands in texts is counted along."""
    containers = raw.count(b"{") + raw.count(b"[")
    return containers, containers + raw.count(b",") + 1


def _free_size(work: WorkBound) -> int:
    """Bytes of JSON that are within the budget however they are made: a value takes at least two of them."""
    if work.growth > 1:
        return -1
    each = 64 * (work.load.container + work.load.plain) + work.load.byte
    return 64 * IN_LOOP // max(1, each) - 2


def _work(schema: Mapping[str, object]) -> WorkBound:
    try:
        return work_of(SchemaTree(schema, most=_MOST_SCHEMAS))
    except TooLarge:
        return UNKNOWN


def _read(text: bytes, member: str) -> dict[str, object]:
    definition: dict[str, dict[str, object]] = msgspec.json.decode(text)
    return definition[member]
