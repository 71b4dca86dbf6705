"""Where calls read credentials, those of sources and named ones: opened once, kept until the catalog moves.

While the database is away, what was read within the last minute goes on, as snapshots do.
"""

import time
from collections import OrderedDict
from collections.abc import Mapping

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.requests import Credential, NamedCredential
from gateway.errors import DatabaseUnavailable
from gateway.store import credentials, secrets
from gateway.store.engine import Store
from gateway.store.sealing import Sealer
from gateway.store.silence import PROMPT_S

_FRESH_S = 15.0
_KEPT_S = 60.0


class StoredSecrets:
    """The opened credentials in use; they stay in this object and reach only the wire."""

    def __init__(self, store: Store, sealer: Sealer, *, capacity: int = 4096) -> None:
        self._store = store
        self._sealer = sealer
        self._capacity = capacity
        self._opened: OrderedDict[tuple[TenantId, SourceId], tuple[float, Mapping[str, Credential]]] = OrderedDict()
        self._named: OrderedDict[tuple[TenantId, str], tuple[float, NamedCredential | None]] = OrderedDict()
        self._changes = 0

    async def credentials(self, tenant: TenantId, source: SourceId) -> Mapping[str, Credential]:
        """The source's credentials by security scheme.

        Raises:
            SecretUnreadable: no configured key opens one of them.
            DatabaseUnavailable: they cannot be read now.
        """
        found = self._opened.get((tenant, source))
        if found is not None and _age(found) < _FRESH_S:
            return found[1]
        changes, asked_at = self._changes, time.monotonic()
        try:
            async with self._store.transaction(tenant, within_s=_hurry(found)) as db:
                opened = await secrets.load(tenant, db, self._sealer, source)
        except DatabaseUnavailable:
            kept = self._opened.get((tenant, source))  # it may have been forgotten meanwhile
            if kept is None or _age(kept) > _KEPT_S:
                raise
            return kept[1]
        if changes == self._changes:  # nothing was forgotten while they were being read
            self._opened[tenant, source] = (asked_at, opened)
            if len(self._opened) > self._capacity:
                self._opened.popitem(last=False)
        return opened

    async def named(self, tenant: TenantId, name: str) -> NamedCredential | None:
        """The tenant's credential of this name; None when there is none.

        Raises:
            SecretUnreadable: no configured key opens it.
            DatabaseUnavailable: it cannot be read now.
        """
        found = self._named.get((tenant, name))
        if found is not None and _age(found) < _FRESH_S:
            return found[1]
        changes, asked_at = self._changes, time.monotonic()
        try:
            async with self._store.transaction(tenant, within_s=_hurry(found)) as db:
                opened = await credentials.open_named(tenant, db, self._sealer, name)
        except DatabaseUnavailable:
            kept = self._named.get((tenant, name))  # it may have been forgotten meanwhile
            if kept is None or _age(kept) > _KEPT_S:
                raise
            return kept[1]
        if changes == self._changes:  # nothing was forgotten while it was being read
            self._named[tenant, name] = (asked_at, opened)
            if len(self._named) > self._capacity:
                self._named.popitem(last=False)
        return opened

    def forget(self, tenant: TenantId) -> None:
        """Drop what is kept of a tenant."""
        self._changes += 1
        for key in [key for key in self._opened if key[0] == tenant]:
            del self._opened[key]
        for named in [named for named in self._named if named[0] == tenant]:
            del self._named[named]

    def forget_all(self) -> None:
        """Drop everything that is kept: a change may have been missed."""
        self._changes += 1
        self._opened.clear()
        self._named.clear()


def _age(read: tuple[float, object]) -> float:
    return time.monotonic() - read[0]


def _hurry(kept: tuple[float, object] | None) -> float | None:
    """How long to wait for PostgreSQL; for whoever has nothing to go on with, as long as it takes."""
    return PROMPT_S if kept is not None and _age(kept) <= _KEPT_S else None
