"""The order in which the objects of an application are written: each one after those that it names."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from gateway.catalog.manifests.limits import MAX_FAULTS
from gateway.errors import Conflict, Fault
from gateway.kinds.references import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One wanted object. `exists` is true if the tenant has it already, so that others may name it at any time."""

    address: Address
    rank: int
    refers: frozenset[Address]
    exists: bool


class _Waits:
    """The references of nodes that are not sorted yet, to other nodes that are not."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        places = {node.address: place for place, node in enumerate(nodes)}
        self._nodes = nodes
        self._named_by: dict[int, list[int]] = {}
        self._all: list[int] = []
        """The number of nodes that each one waits for."""
        self._new: list[int] = []
        """The number of those that do not exist yet."""
        for place, node in enumerate(nodes):
            named = {places[each] for each in node.refers if each in places and each != node.address}
            self._all.append(len(named))
            self._new.append(sum(not nodes[target].exists for target in named))
            for target in named:
                self._named_by.setdefault(target, []).append(place)

    def is_ready(self, place: int) -> bool:
        """True if a node waits for none."""
        return not self._all[place]

    def is_possible(self, place: int) -> bool:
        """True if a node waits only for nodes that exist."""
        return not self._new[place]

    def release(self, place: int) -> Sequence[int]:
        """Note that a node is sorted; return those that waited for it."""
        waited = self._named_by.get(place, ())
        for other in waited:
            self._all[other] -= 1
            self._new[other] -= not self._nodes[place].exists
        return waited


def sort_by_references(nodes: Sequence[Node]) -> Sequence[int]:
    """Return the positions of the nodes in the order of writing; without references, by rank and position.

    A cycle of references is left at an object whose references all exist. The work is linear in the references.

    Raises:
        Conflict: new objects name each other in a cycle; the faults name the objects.
    """
    waits = _Waits(nodes)
    waiting = set(range(len(nodes)))
    ready = [(node.rank, place) for place, node in enumerate(nodes) if waits.is_ready(place)]
    possible = [place for place in range(len(nodes)) if waits.is_possible(place)]
    heapify(ready)
    found: list[int] = []
    while waiting:
        if not ready and not possible:
            raise _cycle(sorted(waiting))
        place = heappop(ready)[1] if ready else heappop(possible)
        if place not in waiting:
            continue
        waiting.remove(place)
        found.append(place)
        for other in waits.release(place):
            if waits.is_ready(other):
                heappush(ready, (nodes[other].rank, other))
            if waits.is_possible(other):
                heappush(possible, other)
    return found


def _cycle(places: Sequence[int]) -> Conflict:
    reason = "is new, and names new objects that name it in a cycle"
    faults = [Fault(pointer=f"/objects/{place}", reason=reason) for place in places[:MAX_FAULTS]]
    return Conflict("objects name each other in a cycle; create one of them without its reference", faults=faults)
