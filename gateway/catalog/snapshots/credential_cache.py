"""Cache of opened credentials for calls: credentials of sources, and named credentials.

A value is used for 15 s, unless the tenant's catalog changes earlier. While the database is unreachable, a value stays
in use until it is 60 s old.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Generic, TypeVar

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.errors import DatabaseUnavailable
from gateway.store import credentials, secrets
from gateway.store.database.circuit_breaker import PROMPT_S
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store

_FRESH_S = 15.0
_STALE_S = 60.0

_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value")


class CredentialCache:
    """The opened credentials of this replica, for requests to upstreams."""

    def __init__(self, store: Store, sealer: EnvelopeCipher, *, capacity: int = 4096) -> None:
        self._of_sources = _CachedCredential(store, partial(_open_source, sealer), capacity=capacity)
        self._named = _CachedCredential(store, partial(_open_named, sealer), capacity=capacity)

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme.

        Raises:
            SecretUnreadable: a credential was changed, or no configured key opens it.
            DatabaseUnavailable: PostgreSQL does not respond, and no value of the last 60 s is cached.
        """
        return await self._of_sources.get(tenant, source)

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """The tenant's credential of this name; None when there is none.

        Raises:
            SecretUnreadable: the credential was changed, or no configured key opens it.
            DatabaseUnavailable: PostgreSQL does not respond, and no value of the last 60 s is cached.
        """
        return await self._named.get(tenant, name)

    def forget(self, tenant: TenantId) -> None:
        """Drop all credentials of a tenant."""
        self._of_sources.forget(tenant)
        self._named.forget(tenant)

    def forget_all(self) -> None:
        """Drop all credentials, because a change may have been missed."""
        self._of_sources.forget_all()
        self._named.forget_all()


async def _open_source(sealer: EnvelopeCipher, tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, Credential]:
    return await secrets.load(tenant, db, sealer, source)


async def _open_named(sealer: EnvelopeCipher, tenant: TenantId, db: Db, name: str) -> NamedCredential | None:
    return await credentials.open_named(tenant, db, sealer, name)


class _CachedCredential(Generic[_Name, _Value]):
    """Values by tenant and name: fresh for `_FRESH_S`, and in use for `_STALE_S` while the database is unreachable."""

    def __init__(
        self, store: Store, read: Callable[[TenantId, Db, _Name], Awaitable[_Value]], *, capacity: int
    ) -> None:
        self._store = store
        self._read = read
        self._kept = FairCache[_Name, tuple[float, _Value]](capacity)
        self._changes = 0

    async def get(self, tenant: TenantId, name: _Name) -> _Value:
        """The value of this name. The result None (no such credential) is cached, too."""
        found = self._kept.get(tenant, name)
        if found is not None and _age(found) < _FRESH_S:
            return found[1]
        changes, asked_at = self._changes, time.monotonic()
        try:
            async with self._store.transaction(tenant, within_s=_hurry(found)) as db:
                read = await self._read(tenant, db, name)
        except DatabaseUnavailable:
            kept = self._kept.get(tenant, name)  # `forget` may have dropped it meanwhile
            if kept is None or _age(kept) > _STALE_S:
                raise
            return kept[1]
        if changes == self._changes:  # nothing was forgotten while it was being read
            self._kept.put(tenant, name, (asked_at, read))
        return read

    def forget(self, tenant: TenantId) -> None:
        """Drop all values of a tenant."""
        self._changes += 1
        self._kept.drop_tenant(tenant)

    def forget_all(self) -> None:
        """Drop all values."""
        self._changes += 1
        self._kept.clear()


def _age(read: tuple[float, object]) -> float:
    return time.monotonic() - read[0]


def _hurry(kept: tuple[float, object] | None) -> float | None:
    """Deadline in seconds for PostgreSQL if a cached value is there as a fallback; None (no deadline) otherwise."""
    return PROMPT_S if kept is not None and _age(kept) <= _STALE_S else None
