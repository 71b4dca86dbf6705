"""The order in which the objects of an application are written."""

import sys

import pytest

from gateway.catalog.manifests.order import Node, sort_by_references
from gateway.errors import Conflict
from tests.support.loop_work import LoopWork


def _node(name: str, *refers: str, rank: int = 0, exists: bool = False) -> Node:
    named = frozenset(("tool", each) for each in refers)
    return Node(address=("tool", name), rank=rank, refers=named, exists=exists)


def _sorted(*nodes: Node) -> str:
    return "".join(nodes[place].address[1] for place in sort_by_references(nodes))


def test_an_object_follows_those_that_it_names() -> None:
    """Ours: references decide, then the rank of the kind, then the place in the request (CFG-1)."""
    assert _sorted(_node("a", "c"), _node("b"), _node("c", "d", "missing"), _node("d")) == "bdca"
    assert _sorted(_node("a", rank=2), _node("b", rank=1), _node("c", rank=1), _node("d", rank=0)) == "dbca"
    assert _sorted(_node("a", "b", rank=0), _node("b", rank=9), _node("c", rank=5)) == "cba"
    assert _sorted(_node("a", "a"), _node("b", "b")) == "ab"
    assert sort_by_references([]) == []


def test_a_cycle_of_new_objects_is_refused() -> None:
    """Ours: objects that exist may name each other; new ones cannot be created in a cycle (CFG-1)."""
    assert _sorted(_node("a", "b"), _node("b", "a", exists=True), _node("c", "a")) == "abc"
    with pytest.raises(Conflict) as refused:
        sort_by_references([_node("a", "b"), _node("b", "c"), _node("c", "b"), _node("d")])
    assert [fault.pointer for fault in refused.value.faults] == ["/objects/0", "/objects/1", "/objects/2"]


def test_long_chains_and_wide_fans_are_sorted_in_linear_work() -> None:
    """Ours: a chain of all objects, and one that all others name, are sorted without recursion (CFG-1)."""
    chain = [_node(str(number), str(number + 1)) for number in range(1_000)]
    assert sort_by_references(chain) == list(range(999, -1, -1))
    crowd = [_node("all"), *(_node(str(number), "all") for number in range(999))]
    assert sort_by_references(crowd) == list(range(1_000))


def test_cycles_are_left_in_linear_work() -> None:
    """Ours: objects that wait behind many cycles of existing objects are not searched again for each cycle (CFG-1)."""
    waiting = [_node(f"w{number}", *(f"e{each}" for each in range(20)), "last") for number in range(300)]
    cycles = [_node(f"e{number}", f"e{number ^ 1}", exists=True) for number in range(300)]
    nodes = [*waiting, *cycles, _node("last", "e299")]
    work, former = LoopWork(), sys.getprofile()
    sys.setprofile(work.count)
    try:
        found = sort_by_references(nodes)
    finally:
        sys.setprofile(former)
    assert (len(found), set(found[-300:])) == (601, set(range(300)))
    assert work.calls < 20 * len(nodes) + 300 * 21 * 5
