"""The order in which the objects of an application are written: each one after those that it names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from gateway.errors import Conflict, Fault
from gateway.kinds.references import Address

_MAX_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One wanted object. `exists` is true if the tenant has it already, so that others may name it at any time."""

    address: Address
    rank: int
    refers: frozenset[Address]
    exists: bool


def sort_by_references(nodes: Sequence[Node]) -> Sequence[int]:
    """Return the positions of the nodes in the order of writing; without references, by rank and position.

    A circle of references is left at an object whose references all exist.

    Raises:
        Conflict: new objects name each other in a circle; the faults name the objects.
    """
    places = {node.address: place for place, node in enumerate(nodes)}
    waits = {place: _inside(node, places) for place, node in enumerate(nodes)}
    named_by: dict[int, list[int]] = {}
    for place, targets in waits.items():
        for target in targets:
            named_by.setdefault(target, []).append(place)
    ready = [(nodes[place].rank, place) for place, targets in waits.items() if not targets]
    heapify(ready)
    found: list[int] = []
    while waits:
        place = heappop(ready)[1] if ready else _leave_circle(nodes, waits)
        if waits.pop(place, None) is None:
            continue
        found.append(place)
        for other in named_by.get(place, ()):
            if other in waits:
                waits[other].discard(place)
                if not waits[other]:
                    heappush(ready, (nodes[other].rank, other))
    return found


def _inside(node: Node, places: Mapping[Address, int]) -> set[int]:
    return {places[each] for each in node.refers if each in places and each != node.address}


def _leave_circle(nodes: Sequence[Node], waits: Mapping[int, set[int]]) -> int:
    """The first object that can be written before those that it names, because they exist."""
    for place, targets in waits.items():
        if all(nodes[target].exists for target in targets):
            return place
    faults = [
        Fault(pointer=f"/objects/{place}", reason="is new, and names new objects that name it in a circle")
        for place in list(waits)[:_MAX_SHOWN]
    ]
    raise Conflict("objects name each other in a circle; create one of them without its reference", faults=faults)
