"""Key lookup for authentication, which runs before the tenant is known."""

from collections.abc import Collection, Mapping

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key
from gateway.store import keys
from gateway.store.database.circuit_breaker import PROMPT_S
from gateway.store.engine import Store


class KeyLookup:
    """Finds API keys of all tenants by id in PostgreSQL."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Return the wanted keys that exist, each with the slug of its tenant."""
        async with self._store.unscoped(within_s=PROMPT_S if hurried else None) as db:
            return await keys.find(db, wanted)
