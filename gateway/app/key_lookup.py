"""Key lookup for authentication: the one query that has no tenant yet."""

from collections.abc import Collection, Mapping

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key
from gateway.store import keys
from gateway.store.database.circuit_breaker import PROMPT_S
from gateway.store.engine import Store


class KeyLookup:
    """The keys in PostgreSQL, found by id for any tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Return those of the wanted keys that exist, each with its tenant's slug."""
        async with self._store.unscoped(within_s=PROMPT_S if hurried else None) as db:
            return await keys.find(db, wanted)
