"""Verbs of every singleton: get, set and change, each write with one revision and one audit entry.

The `write_…` function runs in open changes, and the event follows the commit, as for collections.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Generic

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.transaction import (
    Author,
    CatalogChange,
    CatalogContext,
    CatalogOptions,
    OpenChanges,
    open_changes,
)
from gateway.domain.identifiers import TenantId
from gateway.kinds.members import settable, values_of
from gateway.kinds.singleton import OPERATOR, S, Singleton
from gateway.store.engine import Db
from gateway.store.kinds.single_row import SingleRow

Check = Callable[[OpenChanges, S, S], Awaitable[None]]
"""Checks a wanted object in the transaction, given the current one."""
Written = Callable[[OpenChanges, S, S], Awaitable[Mapping[str, object]]]
"""Writes what belongs to a change, such as a job, given the object before and after it; returns members of the audit
entry's detail.
"""
Compute = Callable[[TenantId, Db, S, CatalogOptions], Awaitable[object]]
"""Returns the computed status."""


def _unchanged(one: S) -> S:
    return one


def _defaults(of: type[S], _: CatalogOptions) -> S:
    return of()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown(Generic[S]):
    """A singleton with its computed status and its entity tag."""

    one: S
    status: object
    tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleObject(Generic[S]):
    """The singleton of each tenant, with its special functions."""

    kind: Singleton[S]
    row: SingleRow[S]
    normalise: Callable[[S], S] = _unchanged
    """Checks a wanted object without the database, and returns it in its canonical form."""
    check: Check[S] | None = None
    written: Written[S] | None = None
    compute: Compute[S] | None = None
    initial: Callable[[type[S], CatalogOptions], S] = _defaults
    """Returns the object whose members absent members of a PUT have: that of a new tenant."""
    tag: Callable[[TenantId, Db, S], Awaitable[str]] | None = None
    """Returns the entity tag, if it is not `NAME.version`."""

    async def get(self, tenant: TenantId, catalog: CatalogContext) -> S:
        """The tenant's object; the default one if none was set."""
        async with catalog.store.transaction(tenant) as db:
            return await self.row.get(tenant, db)

    async def show(
        self, tenant: TenantId, catalog: CatalogContext, one: S | None = None, *, compute: Compute[S] | None = None
    ) -> Shown[S]:
        """An object, by default the stored one, with its status and tag, from one snapshot of the database.

        `compute` replaces the function that computes the status.
        """
        compute = compute or self.compute
        async with catalog.store.reading(tenant) as db:
            one = await self.row.get(tenant, db) if one is None else one
            status = None if compute is None else await compute(tenant, db, one, catalog.options)
            return Shown(one=one, status=status, tag=await self.tag_for(tenant, db, one))

    async def set(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        compose: Callable[[S], S],
        *,
        by: Author,
        expected: Expected = None,
    ) -> S:
        """Replace the object by the one that `compose` returns for the current one.

        An object that would not change is left as it is: no revision, no audit entry.

        Raises:
            NotFound: the tenant does not exist.
            PreconditionFailed: the current version matches no expected tag.
            GatewayError: a special check refused the object.
        """
        async with open_changes(tenant, catalog, by=by) as opened:
            return await self.write(opened, compose, expected=expected, is_whole=True)

    async def change(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        revise: Callable[[S], S],
        *,
        by: Author,
        expected: Expected = None,
    ) -> S:
        """Replace the object by the one that `revise` returns for the current one; see `set` for the errors."""
        async with open_changes(tenant, catalog, by=by) as opened:
            return await self.write(opened, revise, expected=expected)

    async def write(
        self, opened: OpenChanges, revise: Callable[[S], S], *, expected: Expected = None, is_whole: bool = False
    ) -> S:
        """Replace the object in open changes; with `is_whole`, an equal object is not written."""
        await opened.lock()
        tenant, db = opened.tenant, opened.db
        current = await self.row.get(tenant, db)
        check_tag(await self.tag_for(tenant, db, current), expected)
        wanted = self.normalise(revise(current))
        members = settable(self.kind.of)
        if is_whole and values_of(wanted, members) == values_of(current, members):
            return current
        name = self.kind.name
        entry = CatalogChange(action=f"{name}.update", target=name, before=current, after=wanted)
        entry.is_installations = self.kind.writers == OPERATOR
        async with opened.one(entry):
            if self.check is not None:
                await self.check(opened, current, wanted)
            saved = await self.row.save(tenant, db, wanted)
            if self.written is not None:
                entry.detail |= await self.written(opened, current, saved)
            await note_hand_change(opened, entry, name, name)
        return saved

    async def tag_for(self, tenant: TenantId, db: Db, one: S) -> str:
        """The entity tag of an object."""
        return f"{self.kind.name}.{one.version}" if self.tag is None else await self.tag(tenant, db, one)
