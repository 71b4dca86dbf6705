"""Drafts: each wanted object beside the current one, composed and checked before it is written."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import anyio

from gateway.catalog.manifests.limits import MAX_DOCUMENT_BYTES, MAX_FAULTS, PREPARED_AT_ONCE
from gateway.catalog.manifests.manifest import ManifestSet, Wanted, locate
from gateway.catalog.manifests.source_target import ReadySource
from gateway.catalog.manifests.targets import CollectionTarget
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError, LimitExceeded, NameConflict, NameTaken
from gateway.kinds.members import values_of
from gateway.kinds.references import Address
from gateway.store.engine import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One wanted object. `former_key` is the key of the current object, if a move changes it."""

    place: int
    wanted: Wanted
    before: Any | None
    composed: Any
    refers: frozenset[Address]
    """The objects that the wanted one names."""
    former_key: str | None = None

    @property
    def is_equal(self) -> bool:
        """True if nothing would change."""
        members = self.wanted.target.members
        if self.before is None or self.former_key is not None:
            return False
        return values_of(self.before, members) == values_of(self.composed, members)

    async def write(self, opened: OpenChanges) -> Any:
        """Write the object in open changes, and return it."""
        target = self.wanted.target
        if self.former_key is not None and isinstance(target, CollectionTarget):
            return await target.rename(opened, self.before, self.wanted.key, self.wanted.compose)
        return await target.write(opened, self.wanted.key, self.wanted.compose)


async def read_drafts(tenant: TenantId, db: Db, given: ManifestSet, *, is_locked: bool = False) -> Sequence[Draft]:
    """Read the current object of each wanted one, and compose the objects to write; see `Target.read` for `is_locked`.

    Raises:
        GatewayError: an object cannot be read, or some cannot be composed; the faults have their places.
    """
    former = {(move.target.name, move.to): move.source for move in given.moved}
    drafts: list[Draft] = []
    refused: list[GatewayError] = []
    for place, wanted in enumerate(given.wanted):
        try:
            before, former_key = await _find(tenant, db, wanted, former.get(wanted.address), is_locked=is_locked)
        except GatewayError as error:
            # An error of a statement ends the transaction; another statement would be an internal error.
            raise locate(error, place, wanted) from error.__cause__  # guard: manifest-reads-end
        try:
            drafts.append(_compose(place, wanted, before, former_key))
        except GatewayError as error:
            refused.append(locate(error, place, wanted))
    if refused:
        refused[0].faults = tuple(fault for error in refused for fault in error.faults)[:MAX_FAULTS]
        raise refused[0]
    return drafts


async def _find(
    tenant: TenantId, db: Db, wanted: Wanted, former: str | None, *, is_locked: bool
) -> tuple[Any | None, str | None]:
    """The current object, and its key if a move changes it."""
    target, key = wanted.target, wanted.key
    before: Any = await target.read(tenant, db, key, is_locked=is_locked)
    moved = None if former is None else await target.read(tenant, db, former, is_locked=is_locked)
    if moved is None:
        return before, None
    if before is not None:
        owner = NameConflict(name=key, owner=f"{target.name}:{key}")
        raise NameTaken(f"the name is taken, so {former} cannot have it", conflicts=[owner])
    return moved, former


def _compose(place: int, wanted: Wanted, before: Any | None, former_key: str | None) -> Draft:
    composed: Any = wanted.compose(before)
    return Draft(
        place=place,
        wanted=wanted,
        before=before,
        composed=composed,
        refers=wanted.target.refers(composed),
        former_key=former_key,
    )


async def prepare_all(
    tenant: TenantId, catalog: CatalogContext, drafts: Sequence[Draft], by: Author
) -> Sequence[Wanted]:
    """Run the checks of changed objects that may wait for the network, some at once; none begins after a refusal.

    Return the wanted objects as the transaction composes them.

    Raises:
        GatewayError: an object was refused: the first one, if there are several.
    """
    refused: dict[int, GatewayError] = {}
    wanted = [draft.wanted for draft in drafts]
    held = 0
    slots = anyio.CapacityLimiter(PREPARED_AT_ONCE)  # guard: apply-prepares-few

    async def prepare(draft: Draft) -> None:
        nonlocal held
        one = draft.wanted
        async with slots:
            if refused:  # guard: apply-prepares-none-after-a-refusal
                return
            try:
                compose = await one.target.ready(tenant, catalog, one.compose, draft.before, by=by)
                held += compose.size if isinstance(compose, ReadySource) else 0
                _check_size(held)
            except GatewayError as error:
                refused[draft.place] = locate(error, draft.place, one)
            else:
                wanted[draft.place] = replace(one, compose=compose)

    async with anyio.create_task_group() as group:
        for draft in drafts:
            if draft.wanted.target.is_prepared:
                group.start_soon(prepare, draft)
    if refused:
        raise refused[min(refused)]
    return wanted


def _check_size(held: int) -> None:
    """Refuse more documents than an application may hold.

    Raises:
        LimitExceeded: they have too many bytes.
    """
    if held > MAX_DOCUMENT_BYTES:  # guard: apply-documents-bounded
        mib = MAX_DOCUMENT_BYTES // 1024 // 1024
        raise LimitExceeded(f"the documents have more than {mib} MiB together; apply fewer sources at once")
