"""What it costs to check one value against one schema, counted without checking it.

Every schema is charged once for every time that a validator which remembers nothing would look at a part of the value.
Parts without parts of their own, such as the numbers of a long vector, are counted together: they cost little each.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from gateway.definitions.schema_costs import components
from gateway.definitions.schema_tree import Edge, Reach, SchemaTree

MOST_EXPLAINED = 2_000
"""How many looks explaining a failure may take: each may be a failure, at 30 microseconds."""

MOST_LOOKS = 100_000
"""How many looks at objects and lists checking may take, where a schema multiplies them."""

MOST_PLAIN_LOOKS = 5_000_000
"""How many looks at all else."""

_ENDLESS = 10**9


class ValueCosts:
    """Prices values for one schema."""

    def __init__(self, tree: SchemaTree) -> None:
        self._nodes = tree.nodes
        self._plain = _plain_costs(tree)

    def is_cheap(self, value: object, *, most: int = MOST_EXPLAINED, most_plain: int = MOST_EXPLAINED) -> bool:
        """Whether checking this value takes no more looks than that."""
        if not _has_parts(value):
            return self._plain[0] <= most_plain
        left: list[tuple[int, object]] = [(0, value)]
        parts = _Parts()
        seen = plain = 0
        while left:
            number, part = left.pop()
            seen += 1
            node = self._nodes[number]
            left.extend((target, part) for target in node.refs)
            for edge in node.edges:
                inner, count = parts.met(edge, part)
                plain += count * self._plain[edge.target]
                left.extend((edge.target, one) for one in inner)
            if seen > most or len(left) > most or plain > most_plain:
                return False
        return True


def count_parts(value: object, *, most: int) -> int:
    """How many values there are in a value, itself included; counting ends above `most`."""
    left: list[object] = [value]
    seen = 0
    while left and seen <= most:
        part = left.pop()
        seen += 1
        if isinstance(part, dict):
            left.extend(cast("Mapping[str, object]", part).values())
        elif isinstance(part, list | tuple):
            left.extend(cast("Sequence[object]", part))
    return seen


class _Parts:
    """The parts of a value that schemas are applied to; a long list is looked through once."""

    def __init__(self) -> None:
        self._split: dict[int, tuple[list[object], int]] = {}

    def met(self, edge: Edge, value: object) -> tuple[Sequence[object], int]:
        """The containers that an inner schema is applied to, at most, and the number of other parts."""
        if edge.reach is Reach.HERE:
            return (value,), 0
        if edge.reach is Reach.PARTS:
            return self._all(value)
        if edge.reach is Reach.NOTHING:
            return (), 0
        part = _named(value, edge.part)
        return ((part,), 0) if _has_parts(part) else ((), 1)

    def _all(self, value: object) -> tuple[list[object], int]:
        key = id(value)
        found = self._split.get(key)
        if found is not None:
            return found
        elements = list(cast("Mapping[str, object]", value).values()) if isinstance(value, dict) else value
        every = cast("Sequence[object]", elements)
        containers: list[object] = [element for element in every if _has_parts(element)]
        split = self._split[key] = (containers, len(every) - len(containers))
        return split


def _has_parts(value: object) -> bool:
    return isinstance(value, dict | list | tuple)


def _named(value: object, part: str | int | None) -> object:
    """The part of this name or index; nothing where there is none."""
    if isinstance(value, dict):
        return cast("Mapping[object, object]", value).get(part)
    elements = cast("Sequence[object]", value)
    return elements[part] if isinstance(part, int) and part < len(elements) else None


def _plain_costs(tree: SchemaTree) -> list[int]:
    """How many schemas look at a value without parts, for each schema."""
    ahead = [[*(edge.target for edge in node.edges if edge.reach is Reach.HERE), *node.refs] for node in tree.nodes]
    groups = components(ahead)
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    costs = [1] * len(ahead)
    for number in sorted(range(len(ahead)), key=lambda number: groups[number]):
        is_endless = sizes[groups[number]] > 1 or number in ahead[number]
        costs[number] = _ENDLESS if is_endless else min(_ENDLESS, 1 + sum(costs[target] for target in ahead[number]))
    return costs
