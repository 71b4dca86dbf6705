"""Bound on the recursion of a schema: the number of checks of one part of a value.

`jsonschema-rs` caches results only where a definition refers directly to itself. Twenty definitions that each refer to
the next one twice are checked a million times. While it collects violations, it caches no results.
"""

from collections.abc import Iterator, Sequence

from gateway.definitions.json_schema.limits import MAX_CHECKS
from gateway.definitions.json_schema.tree import Reach, SchemaNode, SchemaTree


def max_checks(tree: SchemaTree, *, stop: int = MAX_CHECKS) -> int:
    """Return the largest number of schemas that can apply to one part of a value; counting ends above `stop`."""
    groups = _groups(tree.nodes)
    counted: list[_Counts] = [_Counts()] * len(tree.nodes)
    for number in sorted(range(len(tree.nodes)), key=lambda number: groups[number]):
        counted[number] = _count(number, tree.nodes, groups, counted)
        if counted[number].max_count > stop:
            return counted[number].max_count
    return counted[0].max_count


def applies_to_itself(tree: SchemaTree) -> SchemaNode | None:
    """Return a schema that applies to itself at the same value, so that its check never ends; None without one."""
    nodes = tree.nodes
    ahead = [[*(edge.target for edge in node.edges if edge.reach is Reach.HERE), *node.refs] for node in nodes]
    groups = components(ahead)
    sizes: dict[int, int] = {}
    for group in groups:
        sizes[group] = sizes.get(group, 0) + 1
    return next(
        (node for number, node in enumerate(nodes) if sizes[groups[number]] > 1 or number in ahead[number]), None
    )


def multiplies(tree: SchemaTree) -> bool:
    """True if mutually recursive definitions refer to one of them several times, so that costs multiply per level."""
    groups = _groups(tree.nodes)
    meant: dict[int, dict[int, int]] = {}
    for number, node in enumerate(tree.nodes):
        for target in node.refs:
            if groups[target] == groups[number]:
                uses = meant.setdefault(groups[number], {})
                uses[target] = uses.get(target, 0) + 1
    return any(len(uses) > 1 and max(uses.values()) > 1 for uses in meant.values())


def components(ahead: Sequence[Sequence[int]]) -> list[int]:
    """Return the strongly connected component of each node; no edge leads to a component with a higher number."""
    return _CostWalk(ahead).components()


class _Counts:
    """Number of checks that one schema causes: at its value, at each named part of the value, and at every part."""

    __slots__ = ("every", "here", "max_count", "parts")

    def __init__(self) -> None:
        self.here = 1
        self.every = 0
        self.parts: dict[str | int, int] = {}
        self.max_count = 1

    def add(self, other: "_Counts") -> None:
        """Add the counts of a schema that applies to the same value."""
        self.here += other.here
        self.every += other.every
        for part, count in other.parts.items():
            self.parts[part] = self.parts.get(part, 0) + count

    def settle(self) -> None:
        """Compute the worst case."""
        self.max_count = max(self.here, self.every + max(self.parts.values(), default=0))


def _count(number: int, nodes: Sequence[SchemaNode], groups: Sequence[int], counted: Sequence[_Counts]) -> _Counts:
    counts = _Counts()
    for target in nodes[number].refs:
        if groups[target] != groups[number]:
            counts.add(counted[target])
        else:
            counts.here += 1
    for edge in nodes[number].edges:
        is_back = groups[edge.target] == groups[number]
        below = 1 if is_back else counted[edge.target].max_count
        if edge.reach is Reach.HERE and is_back:
            counts.here += 1
        elif edge.reach is Reach.HERE:
            counts.add(counted[edge.target])
        elif edge.reach is Reach.PARTS:
            counts.every += below
        elif edge.reach is Reach.PART and edge.part is not None:
            counts.parts[edge.part] = counts.parts.get(edge.part, 0) + below
    counts.settle()
    return counts


def _groups(nodes: Sequence[SchemaNode]) -> list[int]:
    """Return the group number of each schema. Schemas in a cycle share a group; edges never lead to a higher number."""
    return components(
        [[*(edge.target for edge in node.edges if edge.reach is not Reach.NOTHING), *node.refs] for node in nodes]
    )


class _CostWalk:
    """Tarjan's algorithm, without recursion."""

    def __init__(self, ahead: Sequence[Sequence[int]]) -> None:
        self._ahead = ahead
        self._order: list[int | None] = [None] * len(ahead)
        self._lowest = [0] * len(ahead)
        self._component: list[int | None] = [None] * len(ahead)
        self._waiting: list[int] = []
        self._path: list[tuple[int, Iterator[int]]] = []
        self._clock = 0
        self._made = 0

    def components(self) -> list[int]:
        for root in range(len(self._ahead)):
            if self._order[root] is None:
                self._enter(root)
            while self._path:
                self._advance()
        return [number or 0 for number in self._component]

    def _enter(self, node: int) -> None:
        self._order[node] = self._lowest[node] = self._clock
        self._clock += 1
        self._waiting.append(node)
        self._path.append((node, iter(self._ahead[node])))

    def _advance(self) -> None:
        node, rest = self._path[-1]
        for following in rest:
            if self._order[following] is None:
                self._enter(following)
                return
            if self._component[following] is None:
                self._lowest[node] = min(self._lowest[node], self._lowest[following])
        self._leave(node)

    def _leave(self, node: int) -> None:
        self._path.pop()
        if self._path:
            above = self._path[-1][0]
            self._lowest[above] = min(self._lowest[above], self._lowest[node])
        if self._lowest[node] != self._order[node]:
            return
        member = -1
        while member != node:
            member = self._waiting.pop()
            self._component[member] = self._made
        self._made += 1
