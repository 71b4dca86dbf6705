"""Objects inside an application that shows nothing of its inside."""

import gc
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Kind = type[Any]
Living = Mapping[Kind, Sequence[Any]]
"""The living objects of some types."""


def living(kinds: Iterable[Kind]) -> Living:
    """Find the objects of exactly these types, all in one pass over the heap."""
    found: dict[Kind, list[Any]] = {kind: [] for kind in kinds}
    gc.collect()
    objects: list[object] = gc.get_objects()
    for each in objects:
        if (same := found.get(type(each))) is not None:
            same.append(each)
    return found


def born_since(before: Living) -> Living:
    """The objects of these types that were made since."""
    known = {id(each) for same in before.values() for each in same}
    return {kind: [each for each in same if id(each) not in known] for kind, same in living(before).items()}
