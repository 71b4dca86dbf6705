"""Verbs of every kind: create, set, change, remove, get and page.

A verb has three steps. `prepare` may wait for the network and runs before the transaction. The `write_…` functions run
in open changes, so that one transaction can hold many. The event is published after the commit.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from gateway.catalog.etags import Expected, check_tag
from gateway.catalog.kinds.hand_changes import note_hand_change
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, OpenChanges, open_changes
from gateway.domain.identifiers import TenantId, is_minted
from gateway.domain.members.formats import WORDS
from gateway.domain.order import KEYED, Order, follows, write_moment
from gateway.errors import (
    Conflict,
    Fault,
    LimitExceeded,
    NameConflict,
    NameTaken,
    NotFound,
    PreconditionFailed,
)
from gateway.kinds.kind import Configured, Kind, T
from gateway.kinds.members import settable, values_of
from gateway.store.engine import Db
from gateway.store.kinds import ownership
from gateway.store.kinds.rows import Rows

Revise = Callable[[T], T]
Compose = Callable[[T | None], T]
"""Returns the wanted object, given the current one, if any."""
Prepare = Callable[[TenantId, CatalogContext, T, Author], Awaitable[None]]
"""Checks a wanted object before the transaction; it may wait for the network."""
Complete = Callable[[OpenChanges, T | None, T], Awaitable[T]]
"""Returns a wanted object in its stored form, with the members that follow from others, given the current one."""
Check = Callable[[OpenChanges, T | None, T], Awaitable[None]]
"""Checks a wanted object in the transaction, given the current one, if any."""
Written = Callable[[OpenChanges, T | None, T | None], Awaitable[None]]
"""Writes what belongs to a change, given the object before and after it, such as a job."""
Removing = Callable[[OpenChanges, T], Awaitable[None]]
"""Runs before an object is removed, for what needs its rows."""
InUse = Callable[[TenantId, Db, T], Awaitable[Sequence[tuple[str, str]]]]
"""Returns the objects that name an object, which cannot be removed then: kind and name of each."""
Describe = Callable[[OpenChanges, T | None, T | None], Awaitable[Mapping[str, object]]]
"""Returns members of the audit entry's detail, given the object before and after a change."""
Compute = Callable[[TenantId, CatalogContext, Sequence[T]], Awaitable[Sequence[object]]]
"""Returns the computed status of each object."""
_MAX_USERS_SHOWN = 20


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
        await self._prepare(tenant, catalog, new, by)
        async with open_changes(tenant, catalog, by=by) as opened:
            made = await self.write_new(opened, new)
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
        if self.prepare is not None:
            await self._prepare(tenant, catalog, compose(await self._read(tenant, catalog, name)), by)
        async with open_changes(tenant, catalog, by=by) as opened:
            await opened.lock()
            done, is_new = await self.write_set(opened, name, compose, expected=expected)
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
        if self.prepare is not None:
            await self._prepare(tenant, catalog, revise(await self.get(tenant, catalog, name)), by)
        async with open_changes(tenant, catalog, by=by) as opened:
            await opened.lock()
            current = await self._changeable(opened.tenant, opened.db, name)
            return await self.write_change(opened, current, revise(current), expected=expected)

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
            current = await self._changeable(tenant, opened.db, name)
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
        await self._prepare(tenant, catalog, compose(current), by)
        return compose

    async def write_new(self, opened: OpenChanges, new: T) -> T:
        """Create an object in open changes; see `create`."""
        key = self.kind.key_of(new)
        entry = CatalogChange(action=self.kind.action("create"), target=key, detail={"id": new.id})
        async with opened.one(entry) as db:
            await self._refuse_taken(opened.tenant, db, key)
            limit = self.kind.limit.most
            if await self.rows.count(opened.tenant, db) >= limit:  # guard: kind-bounded
                raise LimitExceeded(f"the tenant has {limit} {self.kind.plural_words} (the limit); delete unused ones")
            new = entry.after = await self._completed(opened, None, new)
            await self._describe(opened, entry, None, new)
            if self.check is not None:
                await self.check(opened, None, new)
            await self.insert(opened, new)
            if self.written is not None:
                await self.written(opened, None, new)
        return await self.find(opened.tenant, opened.db, new.id)

    async def write_set(
        self, opened: OpenChanges, name: str, compose: Compose[T], *, expected: Expected = None
    ) -> tuple[T, bool]:
        """Replace or create an object in open changes; see `set`. The caller holds the lock of the tenant."""
        self._refuse_built_in(name)
        current = await self.rows.get(opened.tenant, opened.db, name, locked=self.is_locked)
        if current is None:
            if expected:
                raise NotFound(f"no such {self.kind.words}")
            self._check_new_name(name)
            return await self.write_new(opened, compose(None)), True
        if expected is not None and not expected:
            raise PreconditionFailed("the object already exists; remove `If-None-Match: *` to replace it")
        wanted = await self._completed(opened, current, compose(current))
        members = [one for one in settable(self.kind.of) if one.is_stored]
        if values_of(wanted, members) == values_of(current, members):
            check_tag(tag_of_kind(current), expected)
            return current, False
        return await self.write_change(opened, current, wanted, expected=expected), False

    async def write_change(self, opened: OpenChanges, current: T, revised: T, *, expected: Expected = None) -> T:
        """Replace an object in open changes; see `change`. The caller holds the lock of the tenant."""
        check_tag(tag_of_kind(current), expected)
        revised = await self._completed(opened, current, revised)
        entry = CatalogChange(
            action=self.kind.action("update"),
            target=self.kind.key_of(revised),
            detail={"id": current.id},
            before=current,
            after=revised,
        )
        async with opened.one(entry) as db:
            await self._describe(opened, entry, current, revised)
            if (key := self.kind.key_of(revised)) != self.kind.key_of(current):
                await self._refuse_taken(opened.tenant, db, key)
            if self.check is not None:
                await self.check(opened, current, revised)
            await self.rows.save(opened.tenant, db, revised)
            if self.written is not None:
                await self.written(opened, current, revised)
            await note_hand_change(opened, entry, self.kind.name, current.id)
        return await self.find(opened.tenant, opened.db, current.id)

    async def write_removal(self, opened: OpenChanges, current: T, *, expected: Expected = None) -> None:
        """Remove an object in open changes; see `remove`. The caller holds the lock of the tenant."""
        check_tag(tag_of_kind(current), expected)
        key = self.kind.key_of(current)
        entry = CatalogChange(action=self.kind.action("delete"), target=key, detail={"id": current.id}, before=current)
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

    async def _prepare(self, tenant: TenantId, catalog: CatalogContext, wanted: T, by: Author) -> None:
        if self.prepare is not None:
            await self.prepare(tenant, catalog, wanted, by)

    async def _completed(self, opened: OpenChanges, current: T | None, wanted: T) -> T:
        return wanted if self.complete is None else await self.complete(opened, current, wanted)

    async def _describe(self, opened: OpenChanges, entry: CatalogChange, before: T | None, after: T | None) -> None:
        if self.describe is not None:
            entry.detail |= await self.describe(opened, before, after)

    async def _read(self, tenant: TenantId, catalog: CatalogContext, name: str) -> T | None:
        async with catalog.store.transaction(tenant) as db:
            return await self.rows.get(tenant, db, name)

    async def _changeable(self, tenant: TenantId, db: Db, name: str) -> T:
        self._refuse_built_in(name)
        return await self.find(tenant, db, name, locked=self.is_locked)

    async def _refuse_taken(self, tenant: TenantId, db: Db, name: str) -> None:
        kind = self.kind
        owner = kind.reserved.get(name)
        if owner is None and await self.rows.get(tenant, db, name) is not None:
            owner = f"{kind.name}:{name}"
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

    def _check_new_name(self, name: str) -> None:
        """Refuse a name under which no object can be created, such as the id of a removed object."""
        words = self.kind.words
        if self.kind.keyed == "id":
            raise NotFound(f"no such {words}")
        if is_minted(name):
            raise NotFound(f"no such {words}; to create one, use a {self.kind.keyed}, not an id")
        if self.kind.is_named and not re.fullmatch(self.kind.form, name):
            raise NotFound(f"no such {words}; to create one, its name {WORDS[self.kind.form]}")


def refuse_in_use(words: str, name: str, users: Sequence[tuple[str, str]]) -> None:
    """Refuse to remove an object that other objects use.

    Raises:
        Conflict: the object is in use; the faults name the first 20 users.
    """
    if not users:
        return
    named_users = [f"{kind.replace('_', ' ')} {user}" for kind, user in users[:_MAX_USERS_SHOWN]]
    suffix = f" and {len(users) - 1} more" if len(users) > 1 else ""
    faults = [Fault(pointer="", reason=f"used by {user}") for user in named_users]
    raise Conflict(f"the {words} {name} is used by {named_users[0]}{suffix}", faults=faults)


def tag_of_kind(one: Configured) -> str:
    """The version of an object as an opaque tag; it contains the id, so a recreated object differs."""
    return f"{one.id}.{one.version}"
