"""Collections of kinds with signing secrets, which the gateway generates and rotates."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from gateway.catalog.kinds.engines.minting_collection import MintingCollection
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.catalog.updates.signatures import new_secret
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import SecretUnreadable
from gateway.kinds.kind import Configured, T
from gateway.store.engine import Db
from gateway.store.kinds.sealed_rows import SealedRows

OVERLAP = timedelta(days=1)
"""Time for which the previous secret also signs after a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCollection(MintingCollection[T]):
    """The objects of one kind, each with signing secrets; its status has the member `old_secret_until`.

    After a rotation, the previous secret stays valid for a day. One that no configured key decrypts is dropped.
    """

    sealed: SealedRows[T, SigningSecrets]

    async def open_secrets(
        self, tenant: TenantId, db: Db, catalog: CatalogContext, of: str, *, now: datetime
    ) -> SigningSecrets | None:
        """The secrets of the object with this id that are valid now; None if there is no such object.

        Raises:
            SecretUnreadable: the secrets were changed, or no configured key decrypts them.
        """
        found = await self.sealed.open(tenant, db, catalog.sealer, of)
        if found is None:
            return None
        one, signing = found
        until: datetime | None = _status_of(one).old_secret_until
        return signing if until is not None and until > now else SigningSecrets(current=signing.current)

    async def insert(self, opened: OpenChanges, new: T) -> None:
        """Store a new object with a generated secret in open changes."""
        secret = new_secret()
        signing = SigningSecrets(current=secret)
        await self.sealed.insert_sealed(opened.tenant, opened.db, opened.catalog.sealer, new, secret=signing)
        opened.generated[new.id] = secret

    async def renew(self, opened: OpenChanges, current: T) -> tuple[T, str]:
        """Store another secret beside the previous one."""
        now, secret = datetime.now(UTC), new_secret()
        previous = await self._previous(opened.tenant, opened.db, opened.catalog, current)
        rotated = self._with_overlap(current, until=now.replace(microsecond=0) + OVERLAP, at=now)
        signing = SigningSecrets(current=secret, previous=previous)
        await self.sealed.write_sealed(opened.tenant, opened.db, opened.catalog.sealer, rotated, secret=signing)
        return rotated, secret

    async def _previous(self, tenant: TenantId, db: Db, catalog: CatalogContext, current: T) -> str | None:
        try:
            found = await self.open_secrets(tenant, db, catalog, current.id, now=datetime.now(UTC))
        except SecretUnreadable:
            return None
        return None if found is None else found.current

    def _with_overlap(self, current: T, *, until: datetime, at: datetime) -> T:
        status = replace(_status_of(current), old_secret_until=until)
        changed: dict[str, Any] = {"status": status, "version": current.version + 1, "updated_at": at}
        return replace(current, **changed)


def _status_of(one: Configured) -> Any:
    """The status of an object; every kind with signing secrets has one."""
    return getattr(one, "status")  # noqa: B009  # no member of `Configured`
