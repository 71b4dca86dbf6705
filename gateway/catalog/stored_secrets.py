"""Where calls read a source's credentials: opened once, kept until the tenant's catalog moves."""

import time
from collections import OrderedDict
from collections.abc import Mapping

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.requests import Credential
from gateway.store import secrets
from gateway.store.engine import Store
from gateway.store.sealing import Sealer

_KEPT_S = 15.0


class StoredSecrets:
    """The opened credentials of the sources in use; they stay in this object and reach only the wire."""

    def __init__(self, store: Store, sealer: Sealer, *, capacity: int = 4096) -> None:
        self._store = store
        self._sealer = sealer
        self._capacity = capacity
        self._opened: OrderedDict[tuple[TenantId, SourceId], tuple[float, Mapping[str, Credential]]] = OrderedDict()
        self._changes = 0

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme.

        Raises:
            SecretUnreadable: no configured key opens one of them.
            DatabaseUnavailable: they cannot be read now.
        """
        found = self._opened.get((tenant, source))
        if found is not None and found[0] > time.monotonic():
            return found[1]
        changes = self._changes
        async with self._store.transaction(tenant) as db:
            opened = await secrets.load(tenant, db, self._sealer, source)
        if changes == self._changes:  # nothing was forgotten while they were being read
            self._opened[tenant, source] = (time.monotonic() + _KEPT_S, opened)
            if len(self._opened) > self._capacity:
                self._opened.popitem(last=False)
        return opened

    def forget(self, tenant: TenantId) -> None:
        """Drop what is kept of a tenant."""
        self._changes += 1
        for key in [key for key in self._opened if key[0] == tenant]:
            del self._opened[key]

    def forget_all(self) -> None:
        """Drop everything that is kept: a change may have been missed."""
        self._changes += 1
        self._opened.clear()
