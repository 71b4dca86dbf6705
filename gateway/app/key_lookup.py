"""Where a credential's key is looked up: the one query that knows no tenant yet."""

from collections.abc import Collection, Mapping

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key
from gateway.store import keys
from gateway.store.database.circuit_breaker import PROMPT_S
from gateway.store.engine import Store


class KeyLookup:
    """The keys in PostgreSQL, found by id whoever owns them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """The keys there are of those wanted, each with its tenant's slug."""
        async with self._store.unscoped(within_s=PROMPT_S if hurried else None) as db:
            return await keys.find(db, wanted)
