"""A dictionary with a capacity, for caches of one replica that belong to all tenants or to one.

Use `gateway.domain.fairness.fair_cache` for a shared cache that a single tenant could fill.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class BoundedCache(OrderedDict[_Key, _Value]):
    """Entries in the order in which they were first stored; a further entry above the capacity evicts the first.

    Reading costs as much as reading a dictionary. An owner that calls `move_to_end` at each use evicts the least
    recently used entry instead.
    """

    __slots__ = ("capacity",)

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity = capacity

    def __setitem__(self, key: _Key, value: _Value) -> None:
        super().__setitem__(key, value)
        if len(self) > self.capacity:
            self.popitem(last=False)
