"""Collections of kinds with secrets that the gateway generates, which only creation and rotation return."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.special_functions import tag_of_kind
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict
from gateway.kinds.kind import T

Renew = Callable[[OpenChanges, T], Awaitable[tuple[T, str]]]
"""Stores another secret in open changes; returns the object as it is stored then, and the secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MintingCollection(Collection[T]):
    """The objects of one kind, each with a generated secret. `insert` adds the secret of a new object to
    `opened.generated`.
    """

    async def rotate(
        self, tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
    ) -> tuple[T, str]:
        """Generate another secret; return the object and the secret.

        Raises:
            NotFound: the tenant has no such object.
            Conflict: the object has no secret.
            PreconditionFailed: the current version matches no expected tag.
        """
        return await self.rotate_by(tenant, catalog, name, self.renew, by=by, expected=expected)

    async def rotate_by(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        name: str,
        renew: Renew[T],
        *,
        by: Author,
        expected: Expected = None,
    ) -> tuple[T, str]:
        """Rotate a secret with another function than `renew`; see `rotate`."""
        entry = CatalogChange(action=self.kind.action("rotate"), target=name)
        async with open_changes(tenant, catalog, by=by) as opened, opened.one(entry) as db:
            current = await self.find(tenant, db, name, locked=self.is_locked)
            check_tag(tag_of_kind(current), expected)
            if self.kind.has_secret is not None and not self.kind.has_secret(current):
                raise Conflict(f"the {self.kind.words} has no secret")
            await self.rows.note_secret(tenant, db, current.id)
            current = await self.find(tenant, db, current.id)
            rotated, secret = await renew(opened, current)
            entry.target = self.kind.key_of(current)
            entry.detail |= {"id": current.id}
            entry.before, entry.after = current, rotated
        return rotated, secret

    @abstractmethod
    async def renew(self, opened: OpenChanges, current: T) -> tuple[T, str]:
        """Store another secret in open changes; return the object as it is stored then, and the secret."""
