"""A least-recently-used cache of one replica that a single tenant cannot fill.

One tenant uses at most a quarter of the capacity, except for a single larger entry. Above its share, its own oldest
entries are evicted. Above the capacity, the oldest entries of all tenants are evicted. Weights are counts or bytes, as
the owner of the cache defines.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from gateway.domain.fairness.share import share_of

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class FairCache(Generic[_Key, _Value]):
    """Entries by tenant and key. `put` never evicts the entry that it stores, regardless of its weight."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.used = 0
        self._entries: OrderedDict[tuple[str, _Key], tuple[_Value, int]] = OrderedDict()
        self._keys_by_tenant: dict[str, OrderedDict[_Key, None]] = {}
        self._used_by: dict[str, int] = {}

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._entries)

    def used_by(self, tenant: str) -> int:
        """Total weight of the tenant's entries."""
        return self._used_by.get(tenant, 0)

    def get(self, tenant: str, key: _Key) -> _Value | None:
        """Return the entry and mark it as the most recently used; None if there is none."""
        found = self._entries.get((tenant, key))
        if found is None:
            return None
        self._entries.move_to_end((tenant, key))
        self._keys_by_tenant[tenant].move_to_end(key)
        return found[0]

    def put(self, tenant: str, key: _Key, value: _Value, weight: int = 1) -> None:
        """Store an entry, then evict until the tenant is within its share and the total within the capacity."""
        self.drop(tenant, key)
        self._entries[tenant, key] = value, weight
        own = self._keys_by_tenant.setdefault(tenant, OrderedDict())
        own[key] = None
        self.used += weight
        self._used_by[tenant] = self.used_by(tenant) + weight
        while self.used_by(tenant) > share_of(self.room) and len(own) > 1:  # guard: share-of-a-cache
            self.drop(tenant, next(iter(own)))
        while self.used > self.room and len(self._entries) > 1:
            self.drop(*next(iter(self._entries)))

    def drop(self, tenant: str, key: _Key) -> None:
        """Remove an entry if it exists."""
        found = self._entries.pop((tenant, key), None)
        if found is None:
            return
        del self._keys_by_tenant[tenant][key]
        self.used -= found[1]
        self._used_by[tenant] -= found[1]
        if not self._keys_by_tenant[tenant]:
            del self._keys_by_tenant[tenant], self._used_by[tenant]

    def drop_tenant(self, tenant: str) -> None:
        """Remove all entries of a tenant."""
        for key in tuple(self._keys_by_tenant.get(tenant, ())):
            self.drop(tenant, key)

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self._keys_by_tenant.clear()
        self._used_by.clear()
        self.used = 0
