"""Collections of kinds with signing secrets, which the gateway generates and rotates."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.collection import Collection, tag_of_kind
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.catalog.updates.signatures import new_secret
from gateway.domain.identifiers import TenantId
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import SecretUnreadable
from gateway.kinds.kind import Configured
from gateway.store.engine import Db
from gateway.store.kinds.sealed_rows import SealedRows

T = TypeVar("T", bound=Configured)

OVERLAP = timedelta(days=1)
"""Time for which the previous secret also signs after a rotation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedCollection(Collection[T]):
    """The objects of one kind, each with signing secrets; its status has the member `old_secret_until`."""

    sealed: SealedRows[T, SigningSecrets]

    async def rotate(
        self, tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
    ) -> tuple[T, str]:
        """Generate another secret; return the object and the secret. The previous one stays valid for a day.

        A previous secret that no configured key decrypts is dropped.

        Raises:
            NotFound: the tenant has no such object.
            PreconditionFailed: the current version matches no expected tag.
        """
        now, secret = datetime.now(UTC), new_secret()
        entry = CatalogChange(action=f"{self.kind.name}.rotate", target=name)
        async with open_changes(tenant, catalog, by=by) as opened, opened.one(entry) as db:
            current = await self.find(tenant, db, name, locked=self.is_locked)
            check_tag(tag_of_kind(current), expected)
            previous = await self._previous(tenant, db, catalog, current)
            rotated = self._with_overlap(current, until=now.replace(microsecond=0) + OVERLAP, at=now)
            entry.target, entry.detail = self.kind.key_of(current), {"id": current.id}
            entry.before, entry.after = current, rotated
            signing = SigningSecrets(current=secret, previous=previous)
            await self.sealed.write_sealed(tenant, db, catalog.sealer, rotated, signing)
        return rotated, secret

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
        await self.sealed.insert_sealed(opened.tenant, opened.db, opened.catalog.sealer, new, signing)
        opened.generated[new.id] = secret

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
