"""Cache of decrypted credentials for calls: credentials of sources, and named credentials.

A value is used for 15 s, unless the tenant's catalog changes earlier. While the database is unreachable, a value is
used until it is 60 s old. A secret in an external store is read there each time, without a database connection. If the
read fails, the call fails, and the store is read again after one second at the earliest.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from gateway.catalog.snapshots.limits import CREDENTIAL_FRESH_S, FAILED_S, STALE_S
from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.refusals import SecretUnavailable
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.errors import DatabaseUnavailable
from gateway.store import secrets
from gateway.store.database.limits import PROMPT_S
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db, Store
from gateway.store.kinds.credentials import open_named
from gateway.store.kinds.tenants import TENANTS
from gateway.upstream.secret_stores.stores import SecretStores

_Name = TypeVar("_Name", bound=str)
_Value = TypeVar("_Value")


class CredentialCache:
    """The decrypted credentials of this replica, for requests to upstreams."""

    def __init__(
        self, store: Store, sealer: EnvelopeCipher, stores: SecretStores | None = None, *, capacity: int = 4096
    ) -> None:
        self._of_sources = _CachedCredential(store, partial(_open_source, sealer), _complete, capacity=capacity)
        finish = partial(read_external_secret, store, stores or SecretStores())
        self._named: _CachedCredential[str, NamedCredential | None] = _CachedCredential(
            store, partial(_open_named, sealer), finish, capacity=capacity
        )

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme.

        Raises:
            SecretUnreadable: a credential was changed, or no configured key decrypts it.
            DatabaseUnavailable: PostgreSQL does not respond, and no value of the last 60 s is cached.
        """
        return await self._of_sources.get(tenant, source)

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """The tenant's credential with this name; None if there is none.

        Raises:
            SecretUnreadable: the credential was changed, or no configured key decrypts it.
            SecretUnavailable: the external store to which it refers did not return the secret.
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
    return await open_named(tenant, db, sealer, name)


async def read_external_secret(
    store: Store, stores: SecretStores, tenant: TenantId, found: NamedCredential | None
) -> NamedCredential | None:
    """The credential with its secret, read from the external store if it refers to one.

    Raises:
        SecretUnavailable: the store did not return it.
    """
    if found is None or found.reference is None:
        return found
    value = await read_reference(store, stores, tenant, found.reference)
    return replace(found, credential=replace(found.credential, value=value))


async def read_reference(store: Store, stores: SecretStores, tenant: TenantId, reference: SecretReference) -> str:
    """The secret of a tenant's reference, read now.

    Raises:
        SecretUnavailable: the store did not return it, or the tenant was deleted.
    """
    async with store.transaction(tenant) as db:
        owner = await TENANTS.get(tenant, db, tenant)
    if owner is None:
        raise SecretUnavailable("the tenant was deleted")
    return await stores.read(tenant, owner.slug, reference)


async def _complete(_: TenantId, found: Mapping[str, Credential]) -> Mapping[str, Credential]:
    return found


class _CachedCredential(Generic[_Name, _Value]):
    """Values by tenant and name: fresh for `CREDENTIAL_FRESH_S`, and usable for `STALE_S` without the database."""

    def __init__(
        self,
        store: Store,
        read: Callable[[TenantId, Db, _Name], Awaitable[_Value]],
        finish: Callable[[TenantId, _Value], Awaitable[_Value]],
        *,
        capacity: int,
    ) -> None:
        self._store = store
        self._read = read
        self._finish = finish
        self._failed = FairCache[_Name, tuple[float, SecretUnavailable]](capacity)
        self._kept = FairCache[_Name, tuple[float, _Value]](capacity)
        self._changes = 0

    async def get(self, tenant: TenantId, name: _Name) -> _Value:
        """The value for this name. The result None (no such credential) is cached as well."""
        found = self._kept.get(tenant, name)
        if found is not None and _age(found) < CREDENTIAL_FRESH_S:
            return found[1]
        failed = self._failed.get(tenant, name)
        if failed is not None and _age(failed) < FAILED_S:
            raise failed[1].with_traceback(None)
        changes, asked_at = self._changes, time.monotonic()
        try:
            async with self._store.transaction(tenant, within_s=_read_timeout(found)) as db:
                read = await self._read(tenant, db, name)
        except DatabaseUnavailable:
            kept = self._kept.get(tenant, name)  # `forget` may have removed the entry during the read
            if kept is None or _age(kept) > STALE_S:
                raise
            return kept[1]
        try:
            read = await self._finish(tenant, read)
        except SecretUnavailable as error:
            self._failed.put(tenant, name, (time.monotonic(), error))
            raise
        if changes == self._changes:  # unless `forget` was called during the read
            self._kept.put(tenant, name, (asked_at, read))
        return read

    def forget(self, tenant: TenantId) -> None:
        """Drop all values of a tenant."""
        self._changes += 1
        self._kept.drop_tenant(tenant)
        self._failed.drop_tenant(tenant)

    def forget_all(self) -> None:
        """Drop all values."""
        self._changes += 1
        self._kept.clear()
        self._failed.clear()


def _age(read: tuple[float, object]) -> float:
    return time.monotonic() - read[0]


def _read_timeout(kept: tuple[float, object] | None) -> float | None:
    """Deadline in seconds for PostgreSQL if a cached value can be used instead; otherwise None."""
    return PROMPT_S if kept is not None and _age(kept) <= STALE_S else None
