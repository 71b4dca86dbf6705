"""Verbs of every kind: create, set, change, remove, get and page.

A verb has three steps. `prepare` may wait for the network or a thread and runs before the transaction. The `write_…`
functions run in open changes, so that one transaction can hold many. The event is published after the commit.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.engines.hand_changes import note_hand_change
from gateway.catalog.kinds.engines.prepared import as_prepared, is_equal
from gateway.catalog.kinds.engines.special_functions import (
    Check,
    Complete,
    Compose,
    Compute,
    Describe,
    InUse,
    Prepare,
    RefuseForeign,
    Removing,
    Revise,
    Tag,
    Written,
    check_new_name,
    refuse_in_use,
    tag_of_kind,
)
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order, follows, write_moment
from gateway.errors import (
    Conflict,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    PreconditionFailed,
)
from gateway.kinds.kind import Kind, T
from gateway.store.engine import Db
from gateway.store.kinds import ownership
from gateway.store.kinds.rows import Rows

_EXISTS = "the object already exists; remove `If-None-Match: *` to replace it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection(Generic[T]):
    """The objects of one kind, with the special functions of the kind."""

    kind: Kind[T]
    rows: Rows[T]
    prepare: Prepare[T] | None = None
    complete: Complete[T] | None = None
    check: Check[T] | None = None
    written: Written[T] | None = None
    removing: Removing[T] | None = None
    in_use: InUse[T] | None = None
    describe: Describe[T] | None = None
    compute: Compute[T] | None = None
    refuse_foreign: RefuseForeign | None = None
    tag: Tag[T] = tag_of_kind
    is_heavy: bool = False
    """True if `prepare` uses the CPU for long."""
    is_locked: bool = False
    """True if jobs change the status, so that a change locks the row first."""

    async def create(self, tenant: TenantId, catalog: CatalogContext, new: T, *, by: Author) -> T:
        """Create an object.

        Raises:
            NameTaken: the tenant has an object of this kind and name, or the name is reserved.
            LimitExceeded: the tenant has reached the limit of the kind.
            GatewayError: a special check refused the object.
        """
        made, _ = await self.create_with_secret(tenant, catalog, new, by=by)
        return made

    async def create_with_secret(
        self, tenant: TenantId, catalog: CatalogContext, new: T, *, by: Author
    ) -> tuple[T, str | None]:
        """Create an object; return it, and the secret that the gateway generated for it, if any. See `create`."""
        ready = await self._prepare(tenant, catalog, new, by)
        async with open_changes(tenant, catalog, by=by) as opened:
            made = await self.write_new(opened, ready)
        return made, opened.generated.get(made.id)

    async def set(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        name: str,
        compose: Compose[T],
        *,
        by: Author,
        expected: Expected = None,
    ) -> tuple[T, bool, str | None]:
        """Replace the object of this name or id, or create it.

        Return it, True if it is new, and the secret that was generated for it, if any.

        An object that would not change is left as it is: no revision, no audit entry. An empty set of expected
        versions permits only the creation.

        Raises:
            PreconditionFailed: the object exists, and its version matches no expected tag.
            NotFound: there is no such object, and a version is expected or none can be created under this name.
            GatewayError: as for `create` and `change`.
        """
        ready = compose
        if self.prepare is not None:
            seen = await self._read(tenant, catalog, name, expected)
            ready = await self.ready_to_set(tenant, catalog, compose, seen, by=by)
        async with open_changes(tenant, catalog, by=by) as opened:
            await opened.lock()
            done, is_new = await self.write_set(opened, name, ready, expected=expected)
        return done, is_new, opened.generated.get(done.id)

    async def change(
        self,
        tenant: TenantId,
        catalog: CatalogContext,
        name: str,
        revise: Revise[T],
        *,
        by: Author,
        expected: Expected = None,
    ) -> T:
        """Replace the object of this name or id by the one that `revise` returns.

        Raises:
            NotFound: the tenant has no such object.
            Conflict: the object is built in.
            PreconditionFailed: the current version matches no expected tag.
            NameTaken: it has a new name, which is taken.
            GatewayError: a special check refused the object.
        """

        def compose(current: T | None) -> T:
            if current is None:
                raise NotFound(f"no such {self.kind.words}")
            return revise(current)

        self._refuse_built_in(name)
        ready: Compose[T] = compose
        if self.prepare is not None:
            ready = await self.ready(tenant, catalog, compose, await self._read(tenant, catalog, name), by=by)
        async with open_changes(tenant, catalog, by=by) as opened:
            await opened.lock()
            current = await self._changeable(opened, name)
            return await self.write_change(opened, current, ready(current), expected=expected)

    async def remove(
        self, tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
    ) -> None:
        """Remove the object of this name or id.

        Raises:
            NotFound: the tenant has no such object.
            Conflict: the object is built in, or others use it; the faults name the first 20 users.
            PreconditionFailed: the current version matches no expected tag.
        """
        async with open_changes(tenant, catalog, by=by) as opened:
            await opened.lock()
            current = await self._changeable(opened, name)
            await self.write_removal(opened, current, expected=expected)

    async def get(self, tenant: TenantId, catalog: CatalogContext, name: str) -> T:
        """The object of this name or id.

        Raises:
            NotFound: the tenant has no such object.
        """
        async with catalog.store.transaction(tenant) as db:
            return await self.find(tenant, db, name)

    async def page(
        self, tenant: TenantId, catalog: CatalogContext, /, *, after: str | None, limit: int, order: Order = KEYED
    ) -> Sequence[T]:
        """One page of the tenant's objects, by default sorted by key; a built-in object is among them."""
        async with catalog.store.transaction(tenant) as db:
            found = list(await self.rows.page(tenant, db, after=after, limit=limit, order=order))
        built_in = self.kind.built_in
        if built_in is not None and follows(self._position(built_in, order), after, order):
            found.append(built_in)
            found.sort(key=lambda one: self._position(one, order), reverse=order.is_descending)
        return found[:limit]

    async def statuses(self, tenant: TenantId, catalog: CatalogContext, found: Sequence[T]) -> Sequence[object]:
        """The status of each object: computed, or a member of the object; None for a kind without a status."""
        if self.compute is not None:
            return await self.compute(tenant, catalog, found)
        return [getattr(one, "status", None) for one in found]

    async def find(self, tenant: TenantId, db: Db, name: str, *, locked: bool = False) -> T:
        """The object of this name or id, in the caller's transaction.

        Raises:
            NotFound: the tenant has no such object.
        """
        if self.kind.built_in is not None and name == self.kind.key_of(self.kind.built_in):
            return self.kind.built_in
        found = await self.rows.get(tenant, db, name, locked=locked)
        if found is None:
            raise NotFound(f"no such {self.kind.words}")
        return found

    async def exists(self, tenant: TenantId, db: Db, name: str) -> bool:
        """True if the tenant has an object of exactly this name."""
        try:
            return self.kind.key_of(await self.find(tenant, db, name)) == name
        except NotFound:
            return False

    async def ready(
        self, tenant: TenantId, catalog: CatalogContext, compose: Compose[T], current: T | None, *, by: Author
    ) -> Compose[T]:
        """Prepare the object that `compose` returns for the current one, outside of transactions.

        Return the function that composes it in the transaction.
        """
        first = compose(current)
        prepared = await self._prepare(tenant, catalog, first, by)
        return compose if prepared is first else as_prepared(self.kind, compose, first, prepared)

    async def ready_to_set(
        self, tenant: TenantId, catalog: CatalogContext, compose: Compose[T], current: T | None, *, by: Author
    ) -> Compose[T]:
        """As `ready`, but an object that would not change is not prepared, because nothing of it will be written."""
        if current is not None and is_equal(self.kind, first := compose(current), current):
            return as_prepared(self.kind, compose, first, first)
        return await self.ready(tenant, catalog, compose, current, by=by)

    async def write_new(self, opened: OpenChanges, new: T) -> T:
        """Create an object in open changes; see `create`."""
        key = self.kind.key_of(new)
        entry = self._entry("create", key, new)
        async with opened.one(entry) as db:
            await self._refuse_taken(opened.tenant, db, key)
            limit = self.kind.limit
            if limit is not None and await self.rows.count(opened.tenant, db) >= limit.most:  # guard: kind-bounded
                plural = self.kind.plural_words
                owner = "installation" if self.kind.is_operators else "tenant"
                raise LimitExceeded(f"the {owner} has {limit.most} {plural} (the limit); delete unused ones")
            new = entry.after = await self._completed(opened, None, new)
            await self._describe(opened, entry, None, new)
            if self.check is not None:
                await self.check(opened, None, new)
            await self.insert(opened, new)
            if self.written is not None:
                entry.detail |= await self.written(opened, None, new) or {}
        return await self.find(opened.tenant, opened.db, new.id)

    async def write_set(
        self, opened: OpenChanges, name: str, compose: Compose[T], *, expected: Expected = None
    ) -> tuple[T, bool]:
        """Replace or create an object in open changes; see `set`. The caller holds the lock of the tenant."""
        self._refuse_built_in(name)
        current = await self.rows.get(opened.tenant, opened.db, name, locked=self.is_locked)
        if current is None:
            await self._refuse_foreign(opened.tenant, opened.catalog, opened.db, name, expected=expected)
            if expected:
                raise NotFound(f"no such {self.kind.words}")
            self.check_new_name(name)
            return await self.write_new(opened, compose(None)), True
        if expected is not None and not expected:
            raise PreconditionFailed(_EXISTS)
        wanted = await self._completed(opened, current, compose(current))
        if is_equal(self.kind, wanted, current):
            check_tag(self.tag(current), expected)
            return current, False
        return await self.write_change(opened, current, wanted, expected=expected), False

    async def write_change(self, opened: OpenChanges, current: T, revised: T, *, expected: Expected = None) -> T:
        """Replace an object in open changes; see `change`. The caller holds the lock of the tenant."""
        check_tag(self.tag(current), expected)
        revised = await self._completed(opened, current, revised)
        entry = self._entry("update", self.kind.key_of(revised), current)
        entry.before, entry.after = current, revised
        async with opened.one(entry) as db:
            await self._describe(opened, entry, current, revised)
            if (key := self.kind.key_of(revised)) != self.kind.key_of(current):
                await self._refuse_taken(opened.tenant, db, key)
            if self.check is not None:
                await self.check(opened, current, revised)
            await self.save(opened, current, revised)
            if self.written is not None:
                entry.detail |= await self.written(opened, current, revised) or {}
            await note_hand_change(opened, entry, self.kind.name, current.id)
        return await self.find(opened.tenant, opened.db, current.id)

    async def write_removal(self, opened: OpenChanges, current: T, *, expected: Expected = None) -> None:
        """Remove an object in open changes; see `remove`. The caller holds the lock of the tenant."""
        check_tag(self.tag(current), expected)
        key = self.kind.key_of(current)
        entry = self._entry("delete", key, current)
        entry.before = current
        async with opened.one(entry) as db:
            await self._describe(opened, entry, current, None)
            if self.in_use is not None:
                refuse_in_use(self.kind.words, key, await self.in_use(opened.tenant, db, current))
            if self.removing is not None:
                await self.removing(opened, current)
            await self.rows.remove(opened.tenant, db, current.id)
            if self.written is not None:
                await self.written(opened, current, None)
            await note_hand_change(opened, entry, self.kind.name, current.id)
            await ownership.remove(opened.tenant, db, self.kind.name, current.id)

    async def insert(self, opened: OpenChanges, new: T) -> None:
        """Store a new object in open changes, without checks and without an entry."""
        await self.rows.insert(opened.tenant, opened.db, new)

    async def save(self, opened: OpenChanges, current: T, revised: T) -> None:
        """Store a changed object in open changes, without checks and without an entry."""
        del current
        await self.rows.save(opened.tenant, opened.db, revised)

    def _entry(self, verb: str, key: str, one: T) -> CatalogChange:
        """The entry of a change; the trail of the installation has a copy of what happens to a tenant as a whole."""
        return CatalogChange(
            action=self.kind.action(verb), target=key, detail={"id": one.id}, is_installations=self.kind.is_tenants
        )

    async def _read(self, tenant: TenantId, catalog: CatalogContext, name: str, expected: Expected = None) -> T | None:
        async with catalog.store.transaction(tenant) as db:
            current = await self.rows.get(tenant, db, name)
            if current is None:
                await self._refuse_foreign(tenant, catalog, db, name, expected=expected)
                if expected:
                    raise NotFound(f"no such {self.kind.words}")
            return current

    async def _completed(self, opened: OpenChanges, current: T | None, wanted: T) -> T:
        return wanted if self.complete is None else await self.complete(opened, current, wanted)

    async def _describe(self, opened: OpenChanges, entry: CatalogChange, before: T | None, after: T | None) -> None:
        if self.describe is not None:
            entry.detail |= await self.describe(opened, before, after)

    async def _prepare(self, tenant: TenantId, catalog: CatalogContext, wanted: T, by: Author) -> T:
        ready = None if self.prepare is None else await self.prepare(tenant, catalog, wanted, by)
        return wanted if ready is None else ready

    async def _changeable(self, opened: OpenChanges, name: str) -> T:
        self._refuse_built_in(name)
        if await self.rows.get(opened.tenant, opened.db, name) is None:
            await self._refuse_foreign(opened.tenant, opened.catalog, opened.db, name)
        return await self.find(opened.tenant, opened.db, name, locked=self.is_locked)

    async def _refuse_foreign(
        self, tenant: TenantId, catalog: CatalogContext, db: Db, name: str, *, expected: Expected = None
    ) -> None:
        if self.refuse_foreign is None:
            return
        try:
            await self.refuse_foreign(tenant, catalog, db, name)
        except Conflict:
            if expected is not None and not expected:
                raise PreconditionFailed(_EXISTS) from None
            raise

    async def _refuse_taken(self, tenant: TenantId, db: Db, name: str) -> None:
        kind = self.kind
        owner = kind.reserved.get(name)
        if owner is None and (found := await self.rows.get(tenant, db, name)) is not None:
            owner = kind.owner_of(found)
        if owner is not None:
            raise NameTaken(
                f"the {kind.words} {kind.keyed} {name} is taken", conflicts=[NameConflict(name=name, owner=owner)]
            )

    def _refuse_built_in(self, name: str) -> None:
        if self.kind.built_in is not None and name == self.kind.key_of(self.kind.built_in):
            raise Conflict(f"the {self.kind.words} {name} is built in; it cannot be changed or removed")

    def _position(self, one: T, order: Order) -> tuple[str, ...]:
        """The place of an object in a list."""
        if order.by is None:
            return (self.kind.key_of(one),)
        value: object = getattr(one, order.by)
        return (value if isinstance(value, str) else write_moment(one.created_at), one.id)

    def check_new_name(self, name: str) -> None:
        """Refuse a name under which no object can be created, such as the id of a removed object."""
        check_new_name(self.kind, name)
