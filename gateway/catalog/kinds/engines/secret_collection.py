"""Collections of kinds with secrets that admins send, which only requests to their receivers have."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.kept_secrets import refuse_moved_secret
from gateway.catalog.transaction import OpenChanges
from gateway.domain.members.markers import Shape
from gateway.kinds.kind import Configured
from gateway.kinds.members import settable
from gateway.store.kinds.sealed_rows import SealedRows

T = TypeVar("T", bound=Configured)
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretCollection(Collection[T], Generic[T, S]):
    """The objects of one kind, each with a secret.

    A change that gives the whole secret replaces it. Otherwise the missing parts are those of the stored secret, and no
    member that names a receiver may differ.
    """

    sealed: SealedRows[T, S]
    needs: Callable[[T], Sequence[str]]
    """Returns the members that give the whole secret of an object."""
    seal: Callable[[T, S | None], S]
    """Returns the secret to store; what the object lacks is that of the stored secret. Refuses one that is unusable."""

    async def insert(self, opened: OpenChanges, new: T) -> None:
        """Store a new object with its secret in open changes."""
        secret = self.seal(new, None)
        await self.sealed.insert_sealed(opened.tenant, opened.db, opened.catalog.sealer, new, secret=secret)

    async def save(self, opened: OpenChanges, current: T, revised: T) -> None:
        """Store a changed object with its secret in open changes.

        Raises:
            SecretNotKept: the stored secret would reach another receiver.
            SecretUnreadable: no configured key decrypts the stored secret, and the change does not give a whole one.
        """
        stored: S | None = None
        missing = self._missing(current, revised)
        if missing:
            given = ", ".join(f"`{name}`" for name in missing)
            refuse_moved_secret(current, revised, remedy=f"send the secret again ({given}), or leave it as it is")
            found = await self.sealed.open(opened.tenant, opened.db, opened.catalog.sealer, current.id)
            stored = None if found is None else found[1]
        now: dict[str, Any] = {"version": current.version + 1, "updated_at": datetime.now(UTC)}
        secret = self.seal(revised, stored)
        await self.sealed.write_sealed(
            opened.tenant, opened.db, opened.catalog.sealer, replace(revised, **now), secret=secret
        )
        if len(missing) < len(self.needs(revised)):
            await self.rows.note_secret(opened.tenant, opened.db, current.id)

    def _missing(self, current: T, revised: T) -> Sequence[str]:
        """The needed members that a change does not give; an omitted reference is the stored object itself."""
        references = {one.name for one in settable(self.kind.of) if Shape.REFERENCE in one.marks}
        given = {name: getattr(revised, name) for name in self.needs(revised)}
        return [
            name
            for name, value in given.items()
            if value is None or (name in references and value is getattr(current, name))
        ]
