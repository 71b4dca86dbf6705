"""The dictionary with a capacity."""

from gateway.domain.fairness.bounded_cache import BoundedCache


def test_a_further_entry_evicts_the_one_stored_first() -> None:
    """Ours: a cache of a replica never holds more than its capacity."""
    cache = BoundedCache[str, int](2)

    cache["a"] = 1
    cache["b"] = 2
    cache["c"] = 3

    assert dict(cache) == {"b": 2, "c": 3}


def test_a_stored_entry_that_is_replaced_evicts_none() -> None:
    """Ours: replacing an entry needs no room, and keeps its place."""
    cache = BoundedCache[str, int](2)
    cache["a"] = 1
    cache["b"] = 2

    cache["a"] = 3
    cache["c"] = 4

    assert dict(cache) == {"b": 2, "c": 4}


def test_an_entry_moved_to_the_end_outlives_the_others() -> None:
    """Ours: an owner that marks uses has a least-recently-used cache."""
    cache = BoundedCache[str, int](2)
    cache["a"] = 1
    cache["b"] = 2

    cache.move_to_end("a")
    cache["c"] = 3

    assert dict(cache) == {"a": 1, "c": 3}


def test_every_way_of_storing_is_bounded() -> None:
    """Ours: no method of a dictionary passes the capacity."""
    cache = BoundedCache[str, int](2)

    cache.update({"a": 1, "b": 2, "c": 3})
    cache.setdefault("d", 4)
    cache |= {"e": 5}

    assert dict(cache) == {"d": 4, "e": 5}
    assert cache.get("a") is None
    assert cache.pop("d", None) == 4
