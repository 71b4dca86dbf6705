"""Upper bound on the work of checking a value against a schema, derived from the schema alone, once per schema.

A unit is about 20 ns of `jsonschema-rs`. `WorkBound` contains the most units that one object or list, one other value
and 64 bytes of text can cost. It counts assertions as well as schemas: each name in `required`, each value of an
`enum`. Three factors multiply the work:

- a schema that applies in several ways is counted once for each way;
- `unevaluatedProperties` and `unevaluatedItems` check every subschema of the same value a second time, so
  nested ones double the work per level;
- definitions that refer back to each other in several ways multiply the work with the depth of the value (`growth`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.definitions.json_schema.assertion_costs import NOTHING, Load, load_of, loads_of_parts
from gateway.definitions.json_schema.recursion_costs import components, multiplies
from gateway.definitions.json_schema.tree import Reach, SchemaEdge, SchemaNode, SchemaTree

ENDLESS = 10**15

_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_LIST_KEYWORDS = frozenset({"additionalItems", "contains", "items", "unevaluatedItems"})
_MEMBERS, _ELEMENTS = object(), object()
"""Keys in `_Expansion.back` for all members of an object and all elements of a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkBound:
    """Upper bounds for one value of each kind, and their growth with each level of depth."""

    load: Load
    growth: int = 1
    """Visits to a part per visit to its container; 1 if no recursion multiplies them."""
    copied_growth: int = 1
    """Visits to a part per visit to its container while violations are collected, without cached results."""
    copies_per_name: bool = False
    """True if each refused name of an object copies the whole object (`propertyNames`)."""

    def units(self, *, containers: int, values: int, size: int, depth: int) -> int:
        """Return the most units for the check of a value of this size."""
        once = containers * self.load.container + values * self.load.plain + size * self.load.byte // 64
        return once if self.growth == 1 else min(ENDLESS, once * self.growth**depth)

    def copies(self, *, values: int, depth: int) -> int:
        """Return an upper bound of the values that all violations together copy; each copies the violating value."""
        once = values * (self.load.copied_container * depth + self.load.copied_plain)
        if self.copies_per_name:  # guard: explain-copies-per-name
            once += values * values
        return once if self.copied_growth == 1 else min(ENDLESS, once * self.copied_growth**depth)


UNKNOWN = WorkBound(load=Load(ENDLESS, ENDLESS, ENDLESS, ENDLESS, ENDLESS))
"""Bound of a schema that is too large to be counted."""


def work_of(tree: SchemaTree) -> WorkBound:
    """Return the bound on the work of checking a value against this schema."""
    return _Counting(tree).work()


class _Expansion:
    """Work of checking one value: at the value, at each part, at named parts, and by references back into a cycle."""

    __slots__ = ("back", "every", "here", "parts")

    def __init__(self, here: Load = NOTHING, every: Load = NOTHING) -> None:
        self.here = here
        self.every = every
        self.parts: dict[object, Load] = {}
        self.back: dict[object, int] = {}

    def add(self, other: "_Expansion") -> None:
        """Add further checks of the same value."""
        self.here += other.here
        self.every += other.every
        for part, load in other.parts.items():
            self.parts[part] = self.parts.get(part, NOTHING) + load
        for part, times in other.back.items():
            self.back[part] = self.back.get(part, 0) + times

    def worst_load(self) -> Load:
        """Return the largest load at one value: at this value, or at one part of it."""
        part = NOTHING
        for load in self.parts.values():
            part = part | load
        return self.here | (self.every + part)

    def visits_by_cycle(self) -> int:
        """Return the most visits to one part by schemas in the same cycle as this schema."""
        named = [times for part, times in self.back.items() if isinstance(part, str)]
        placed = [times for part, times in self.back.items() if isinstance(part, int)]
        of_object = self.back.get(_MEMBERS, 0) + max(named, default=0)
        return max(of_object, self.back.get(_ELEMENTS, 0) + max(placed, default=0))


class _Counting:
    """One pass over a tree that counts a schema after its subschemas and the schemas it references."""

    def __init__(self, tree: SchemaTree) -> None:
        self._tree = tree
        self._nodes = tree.nodes
        self._here: Sequence[int] = ()
        self._groups: Sequence[int] = ()
        self._is_endless = False
        self._order_nodes()
        self._marks = any(not _UNEVALUATED.isdisjoint(node.schema) for node in tree.nodes)
        size = len(tree.nodes)
        self._checked: list[_Expansion] = [_Expansion()] * size
        self._marked: list[_Expansion] = [_Expansion()] * size
        self._worst_loads: list[Load] = [NOTHING] * size
        self._growth = 1

    def _order_nodes(self) -> None:
        """Number the groups of schemas in a cycle and, within a group, schemas that apply to the same value."""
        if not self._tree.has_references:  # subschemas have higher numbers than the schemas that contain them
            self._here = self._groups = range(len(self._nodes), 0, -1)
            self._is_endless = False
            return
        here = [[*(edge.target for edge in node.edges if edge.reach is Reach.HERE), *node.refs] for node in self._nodes]
        every = [
            [*(edge.target for edge in node.edges if edge.reach is not Reach.NOTHING), *node.refs]
            for node in self._nodes
        ]
        self._here, self._groups = components(here), components(every)
        is_circular = len(set(self._here)) < len(here)
        self._is_endless = is_circular or any(number in ahead for number, ahead in enumerate(here))

    def work(self) -> WorkBound:
        if self._is_endless:  # a schema applies to itself at the same value
            return UNKNOWN
        order = sorted(range(len(self._nodes)), key=lambda number: (self._groups[number], self._here[number]))
        start = 0
        while start < len(order):
            end = start
            while end < len(order) and self._groups[order[end]] == self._groups[order[start]]:
                self._count(order[end])
                end += 1
            self._finish_group(order[start:end])
            start = end
        is_remembered = not self._marks and not multiplies(self._tree)
        return WorkBound(
            load=self._worst_loads[0].capped(ENDLESS),
            growth=1 if is_remembered else self._growth,
            copied_growth=self._growth,
            copies_per_name=any("propertyNames" in node.schema for node in self._nodes),
        )

    def _count(self, number: int) -> None:
        node = self._nodes[number]
        checked = _Expansion(load_of(node.schema), loads_of_parts(node.schema))
        marked = _Expansion()
        own = _Expansion()
        for target in node.refs:
            checked.add(self._checked[target])
            marked.add(self._marked[target])
        for edge in node.edges:
            if edge.reach is Reach.HERE:
                checked.add(self._checked[edge.target])
                if self._marks:
                    marked.add(self._checked[edge.target])
                    marked.add(self._marked[edge.target])
            elif edge.reach is not Reach.NOTHING:
                keyword = _keyword(node, self._nodes[edge.target])
                self._step(number, edge, keyword, checked)
                if keyword in _UNEVALUATED or keyword == "contains":
                    self._step(number, edge, keyword, own)
        if not _UNEVALUATED.isdisjoint(node.schema):
            checked.add(marked)  # guard: work-of-unevaluated
        if self._marks:
            marked.add(own)
            marked.every += Load(1, 1, 0, 0, 0)
        self._checked[number], self._marked[number] = checked, marked

    def _step(self, number: int, edge: SchemaEdge, keyword: str, into: _Expansion) -> None:
        """Add the load of a subschema for parts. A subschema in the same cycle is only counted in `back`."""
        part: object = edge.part
        if edge.reach is Reach.PARTS:
            part = _ELEMENTS if keyword in _LIST_KEYWORDS else _MEMBERS
        if self._groups[edge.target] == self._groups[number]:
            into.back[part] = into.back.get(part, 0) + 1
            return
        load = self._worst_loads[edge.target]
        if keyword == "propertyNames":  # the schema applies to the name of every part
            load = Load(load.plain, load.plain, load.byte, load.copied_plain, load.copied_plain)
        if edge.reach is Reach.PARTS:
            into.every += load
        else:
            into.parts[part] = into.parts.get(part, NOTHING) + load

    def _finish_group(self, group: Sequence[int]) -> None:
        """Finish a group of schemas in a cycle. Any of them may apply to a part, so the most expensive one counts."""
        largest = _maximum(self._checked[number].here for number in group)
        worst_load = NOTHING
        for number in group:
            checked = self._checked[number]
            visits = checked.visits_by_cycle()
            self._growth = max(self._growth, visits)  # guard: work-of-depth
            for expansion in (checked, self._marked[number]):
                if expansion.back:
                    expansion.every += largest  # guard: work-of-cycles
                    expansion.back = {}
            worst_load = worst_load | checked.worst_load()
        for number in group:
            self._worst_loads[number] = worst_load


def _maximum(loads: Iterable[Load]) -> Load:
    largest = NOTHING
    for load in loads:
        largest = largest | load
    return largest


def _keyword(node: SchemaNode, inner: SchemaNode) -> str:
    """Return the keyword of `node` under which `inner` is found."""
    return str(inner.path[len(node.path)])
