"""Meter of one check: the costs of visits to subschemas, and the rest of the limit.

The cost of a visit covers all work until the next visit, and also the visits that may follow the end of the meter:
each of those fails at once, but a choice, `not` and `contains` go on after a failure.
"""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, cast

import msgspec

from gateway.definitions.json_schema.assertion_costs import NOTHING, Load, load_of, loads_of_parts
from gateway.definitions.json_schema.limits import MAX_MARKS
from gateway.definitions.json_schema.tree import Reach, SchemaNode

_VISIT: Final = 20
"""Units of one charge, about 0.4 µs."""

_FAILED: Final = Load(10, 10, 0, 1, 1)
"""Load of a visit that fails at once."""

_MARK: Final = 8
"""Units of one name or element for `unevaluatedProperties` or `unevaluatedItems`, and each schema at the value."""

_COPY: Final = 25
"""Units of one value that a violation copies, about 0.5 µs."""

_SMALL: Final = 20
_UNEVALUATED: Final = frozenset({"unevaluatedItems", "unevaluatedProperties"})

Charge = Callable[[Any], None]
"""Charges one visit of a subschema to a value; raises `Exhausted` if nothing is left."""


class VisitCost(NamedTuple):
    """Units of one visit: at a container, at another value, per part and per 64 bytes; factors of copied values."""

    container: int
    plain: int
    part: int
    byte: int
    is_deep: bool
    """True if the whole value is compared, not only its parts."""
    copied_container: int
    copied_plain: int
    copied_per_name: bool
    """True if each refused name of an object copies the whole object."""


class Exhausted(Exception):
    """Nothing is left of the limit."""


class Meter:
    """The rest of the limit of the check that holds the lock."""

    __slots__ = ("_left", "_lock", "_sizes")

    def __init__(self) -> None:
        self._left = 0
        self._sizes: dict[int, int] | None = None
        self._lock = threading.Lock()

    @contextmanager
    def lock_now(self) -> Generator[bool]:
        """Hold the lock for the block; False, without it, while another thread checks."""
        is_held = self._lock.acquire(blocking=False)
        try:
            yield is_held
        finally:
            if is_held:
                self._lock.release()

    @property
    def is_exhausted(self) -> bool:
        """True if the last check reached its limit, so that its result is not known."""
        return self._left < 0

    def start(self, units: int) -> None:
        """Begin a check that may spend so many units of work."""
        self._left, self._sizes = units, None

    def start_collecting(self, instance: object, copies: int) -> None:
        """Begin to collect violations that may copy so many values, or take as long."""
        self._left, self._sizes = _COPY * copies, _sizes(instance)

    def charge_of(self, cost: VisitCost) -> Charge:
        """Return the function that charges the visits of subschemas with this cost."""

        def charge(instance: Any) -> None:
            if isinstance(instance, (dict, list)):
                self._left -= cost.container + cost.part * len(cast("Sequence[object]", instance))
                if cost.byte:
                    self._left -= cost.byte * _bytes_of_container(instance, cost) // 64
            else:
                self._left -= cost.plain
                if cost.byte:
                    self._left -= cost.byte * _bytes_of_plain(instance) // 64
            if self._sizes is not None:
                self._left -= _COPY * _copies(instance, cost, self._sizes)
            if self._left < 0:  # guard: meter-exhausted
                raise Exhausted

        return charge


def costs_of(nodes: Sequence[SchemaNode]) -> tuple[Sequence[VisitCost], Sequence[bool]]:
    """Return the cost of each subschema, and which are so small that they are charged to the schema around them."""
    loads = [load_of(node.schema) for node in nodes]
    leaves = [number > 0 and _is_small(node, loads[number]) for number, node in enumerate(nodes)]
    costs = _Costs(nodes, loads, leaves)
    return [costs.of_node(number) for number in range(len(nodes))], leaves


def _is_small(node: SchemaNode, load: Load) -> bool:
    """True for a schema without subschemas whose assertions take little time at any value."""
    return not (node.edges or node.refs or load.byte) and max(load.container, load.plain) <= _SMALL


class _Costs:
    """The costs of all subschemas of a tree."""

    def __init__(self, nodes: Sequence[SchemaNode], loads: Sequence[Load], leaves: Sequence[bool]) -> None:
        self._nodes = nodes
        self._loads = loads
        self._leaves = leaves
        self._marks: dict[int, int] = {}

    def of_node(self, number: int) -> VisitCost:
        node = self._nodes[number]
        here, every, named = self._loads[number], NOTHING, NOTHING
        for edge in node.edges:
            load = self._loads[edge.target] if self._leaves[edge.target] else _FAILED
            if edge.reach is Reach.HERE:
                here += load
            elif edge.reach is Reach.PARTS:
                every += load
            elif edge.reach is Reach.PART:
                named = named | load
        inside = every + named
        part = loads_of_parts(node.schema).container + max(inside.container, inside.plain)
        if not _UNEVALUATED.isdisjoint(node.schema):
            part += _MARK * (1 + self._marks_of(number))  # guard: meter-unevaluated
        return VisitCost(
            container=_VISIT + here.container,
            plain=_VISIT + here.plain,
            part=part,
            byte=self._loads[number].byte,
            is_deep=node.schema.get("uniqueItems") is True,
            copied_container=here.copied_container + inside.copied_container + inside.copied_plain,
            copied_plain=here.copied_plain,
            copied_per_name="propertyNames" in node.schema,
        )

    def _marks_of(self, number: int) -> int:
        """Number of schemas that apply to the same value, each as often as it is reached."""
        known = self._marks.get(number)
        if known is not None:
            return known
        self._marks[number] = MAX_MARKS  # for a schema that applies to itself
        node = self._nodes[number]
        ahead = [*node.refs, *(edge.target for edge in node.edges if edge.reach is Reach.HERE)]
        self._marks[number] = min(MAX_MARKS, sum(1 + self._marks_of(target) for target in ahead))
        return self._marks[number]


def _copies(instance: Any, cost: VisitCost, sizes: Mapping[int, int]) -> int:
    """Return an upper bound of the values that violations at this visit copy."""
    if isinstance(instance, (dict, list)):
        names = len(cast("Sequence[object]", instance)) if cost.copied_per_name else 0
        return 1 + sizes[id(cast("object", instance))] * (cost.copied_container + names)
    return 1 + cost.copied_plain


def _bytes_of_container(instance: Any, cost: VisitCost) -> int:
    """Return the bytes that are compared: of the whole value, or of the names of an object."""
    if cost.is_deep:
        return len(msgspec.json.encode(instance))
    return 4 * sum(map(len, cast("Mapping[str, object]", instance))) if isinstance(instance, dict) else 0


def _bytes_of_plain(instance: Any) -> int:
    if isinstance(instance, str):
        return len(instance) if instance.isascii() else 4 * len(instance)
    return instance.bit_length() // 3 if isinstance(instance, int) else 0


def _sizes(value: object) -> dict[int, int]:
    """Return the number of values in each container, by its identity; for small values, because it is recursive."""
    sizes: dict[int, int] = {}

    def size(part: object) -> int:
        if not isinstance(part, (dict, list)):
            return 1
        held = cast("Mapping[str, object]", part).values() if isinstance(part, dict) else cast("list[object]", part)
        sizes[id(cast("object", part))] = total = 1 + sum(map(size, held))
        return total

    size(value)
    return sizes
