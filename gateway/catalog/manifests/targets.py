"""Targets of manifests: one form for the collections of kinds and for singletons, as `apply` uses them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.kinds.engines.single_object import SingleObject
from gateway.catalog.kinds.engines.special_functions import Compose, refuse_id
from gateway.catalog.kinds.index import COLLECTIONS
from gateway.catalog.kinds.singletons import SINGLE_OBJECTS
from gateway.catalog.manifests.issuer_target import IssuerTarget
from gateway.catalog.manifests.source_target import SourceTarget
from gateway.catalog.transaction import Author, CatalogContext, CatalogOptions, OpenChanges
from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict
from gateway.kinds.kind import Kind
from gateway.kinds.manifests import key_member
from gateway.kinds.members import Member, stored
from gateway.kinds.references import Address, references_of
from gateway.kinds.singleton import Singleton
from gateway.store.engine import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionTarget:
    """The objects of one kind; `rank` orders the kinds in which objects are written, unless references decide."""

    collection: Collection[Any]
    rank: int

    @property
    def kind(self) -> Kind[Any]:
        """The declaration of the kind."""
        return self.collection.kind

    @property
    def name(self) -> str:
        """The name of the kind."""
        return self.kind.name

    @property
    def members(self) -> Sequence[Member]:
        """The members that a manifest sets."""
        return stored(self.kind.of)

    @property
    def is_prepared(self) -> bool:
        """True if objects have a check before the transaction."""
        return self.collection.prepare is not None

    @property
    def is_protected(self) -> bool:
        """True if the removal of an object needs a permission of its own."""
        return self.kind.is_protected

    async def read(self, tenant: TenantId, db: Db, key: str, *, is_locked: bool = False) -> Any | None:
        """The object of this key; None if there is none.

        `is_locked` locks the row, if jobs change objects of the kind. The caller holds the lock of the tenant then:
        applications that lock rows in their own order would wait for each other.

        Raises:
            InvalidBody: the key is an id.
        """
        kind = self.kind
        if kind.built_in is not None and kind.key_of(kind.built_in) == key:
            return kind.built_in
        if kind.keyed == "id":
            return await self._read_name(tenant, db, key)
        locked = is_locked and self.collection.is_locked  # guard: apply-reads-unlocked
        found = await self.collection.rows.get(tenant, db, key, locked=locked)
        if found is not None:
            refuse_id(kind, key, kind.key_of(found))
        return found

    async def _read_name(self, tenant: TenantId, db: Db, name: str) -> Any | None:
        """The only object of this name, for a kind whose names are not unique.

        Raises:
            Conflict: several objects have the name.
        """
        found = await self.collection.rows.named(tenant, db, name, limit=2)
        if len(found) > 1:  # guard: manifest-one-of-a-name
            words = f"several {self.kind.plural_words} have the name {name}"
            raise Conflict(f"{words}, and a manifest names one; rename or delete the others")
        return next(iter(found), None)

    async def read_id(self, tenant: TenantId, db: Db, of: str) -> Any | None:
        """The object with this id; None if there is none."""
        found = await self.collection.rows.get(tenant, db, of, locked=self.collection.is_locked)
        return found if found is not None and found.id == of else None

    def key_of(self, one: Any) -> str:
        """The key of an object, such as its name."""
        key: str = getattr(one, key_member(self.kind) or "")
        return key

    def id_of(self, one: Any) -> str:
        """The id of an object."""
        return str(one.id)

    def forms(self, one: Any) -> Sequence[Any]:
        """The forms of an object of which a set may have a digest: the object itself."""
        return (one,)

    def is_untouched(self, one: Any, options: CatalogOptions) -> bool:
        """False, because an object of a collection exists only after its creation."""
        del one, options
        return False

    async def tag(self, tenant: TenantId, db: Db, one: Any) -> str:
        """The entity tag of an object."""
        del tenant, db
        return self.collection.tag(one)

    def refers(self, one: Any) -> frozenset[Address]:
        """The objects that one names."""
        more = self.kind.refers
        return references_of(one) if more is None else references_of(one) | frozenset(more(one))

    async def ready(
        self, tenant: TenantId, catalog: CatalogContext, compose: Compose[Any], current: Any | None, *, by: Author
    ) -> Compose[Any]:
        """Check a wanted object before the transaction; return the function that composes it in the transaction."""
        return await self.collection.ready_to_set(tenant, catalog, compose, current, by=by)

    async def write(self, opened: OpenChanges, key: str, compose: Compose[Any]) -> Any:
        """Replace or create an object; an equal one is not written."""
        if self.kind.keyed == "id":
            current = await self.read(opened.tenant, opened.db, key)
            if current is None:
                return await self.collection.write_new(opened, compose(None))
            key = current.id
        written, _ = await self.collection.write_set(opened, key, compose)
        return written

    async def rename(self, opened: OpenChanges, current: Any, key: str, compose: Compose[Any]) -> Any:
        """Replace an object by one with another key."""
        revised: Any = replace(compose(current), **{key_member(self.kind) or "": key})
        return await self.collection.write_change(opened, current, revised)

    async def check_adoption(self, opened: OpenChanges, one: Any) -> None:
        """Refuse to take over an object that the caller could not change, such as a file sink of the operator."""
        if self.collection.check is not None:  # guard: manifest-adoption-checked
            await self.collection.check(opened, one, one)

    async def remove(self, opened: OpenChanges, one: Any) -> None:
        """Remove an object."""
        await self.collection.write_removal(opened, one)


@dataclass(frozen=True, slots=True, kw_only=True)
class SingletonTarget:
    """One singleton, which has no key, and its name as its id."""

    single: SingleObject[Any]
    rank: int
    is_prepared: bool = False

    @property
    def kind(self) -> Singleton[Any]:
        """The declaration of the singleton."""
        return self.single.kind

    @property
    def name(self) -> str:
        """The name of the singleton."""
        return self.kind.name

    @property
    def members(self) -> Sequence[Member]:
        """The members that a manifest sets."""
        return stored(self.kind.of)

    async def read(self, tenant: TenantId, db: Db, key: str, *, is_locked: bool = False) -> Any:
        """The tenant's object."""
        del key, is_locked
        return await self.single.row.get(tenant, db)

    def key_of(self, one: Any) -> str:
        """The empty key."""
        del one
        return ""

    def id_of(self, one: Any) -> str:
        """The name of the singleton."""
        del one
        return self.name

    def forms(self, one: Any) -> Sequence[Any]:
        """The forms of the object of which a set may have a digest: the object itself."""
        return (one,)

    def is_untouched(self, one: Any, options: CatalogOptions) -> bool:
        """True if the object has the values of a new tenant; a set may own it without the permission to adopt."""
        initial: Any = self.single.initial(self.kind.of, options)
        return all(getattr(one, each.name) == getattr(initial, each.name) for each in self.members)

    async def tag(self, tenant: TenantId, db: Db, one: Any) -> str:
        """The entity tag of the object."""
        return await self.single.tag_for(tenant, db, one)

    def refers(self, one: Any) -> frozenset[Address]:
        """The objects that the singleton names."""
        return references_of(one)

    async def ready(
        self, tenant: TenantId, catalog: CatalogContext, compose: Compose[Any], current: Any | None, *, by: Author
    ) -> Compose[Any]:
        """Return the same function: singletons need no network."""
        del tenant, catalog, current, by
        return compose

    async def check_adoption(self, opened: OpenChanges, one: Any) -> None:
        """Permit to take over the object: all callers with the scope may change it."""
        del opened, one

    async def write(self, opened: OpenChanges, key: str, compose: Compose[Any]) -> Any:
        """Replace the object; an equal one is not written."""
        del key
        return await self.single.write(opened, compose, is_whole=True)


NamedTarget = CollectionTarget | SourceTarget | IssuerTarget
"""The targets of objects with a name, which pruning can remove."""
Target = NamedTarget | SingletonTarget


def _ranked() -> Sequence[Target]:
    """All targets: singletons that only bound the objects come first, then sources, because primitives use their tools.
    Singletons that name objects come last.
    """
    first = [one for one in SINGLE_OBJECTS if not one.kind.names_objects]
    last = [one for one in SINGLE_OBJECTS if one.kind.names_objects]
    imported = len(first)
    middle = imported + 2
    return [
        *(SingletonTarget(single=one, rank=rank) for rank, one in enumerate(first)),
        SourceTarget(rank=imported),
        IssuerTarget(rank=imported + 1),
        *(CollectionTarget(collection=one, rank=rank) for rank, one in enumerate(COLLECTIONS, middle)),
        *(SingletonTarget(single=one, rank=rank) for rank, one in enumerate(last, middle + len(COLLECTIONS))),
    ]


TARGETS: Mapping[str, Target] = {target.name: target for target in _ranked()}
"""The targets by the name of their kind."""
