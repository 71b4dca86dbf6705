"""Statements over the rows of one kind, each for one tenant.

Every statement names the tenant, and row-level security of the transaction refuses another tenant's rows.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Generic

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Select,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.errors import NotFound
from gateway.kinds.kind import TIMES, Kind, T
from gateway.kinds.members import STATUS, members_of
from gateway.store.engine import Db
from gateway.store.kinds.row_mapper import SECRET_TIME, RowMapper
from gateway.store.pagination import select_page
from gateway.store.tables import metadata

_UPDATED, _VERSION = "updated_at", "version"


class Rows(Generic[T]):
    """The rows of one kind. The limit of the kind applies to rows that meet the conditions `counted`.

    `named` are the conditions for the objects that a name addresses, for a kind whose names are not unique; by default
    those of `counted`.
    """

    def __init__(
        self,
        kind: Kind[T],
        mapper: RowMapper[T],
        *,
        counted: Sequence[ColumnElement[bool]] = (),
        named: Sequence[ColumnElement[bool]] | None = None,
    ) -> None:
        self.kind = kind
        self.table = mapper.table
        self.view = mapper.view
        self._mapper = mapper
        self._columns = {one.name: one.column for one in members_of(kind.of)}
        self._key = self.view.c[self._columns[kind.keyed]]
        self._owner = "id" if kind.is_tenants else "tenant_id"
        self._counted = counted
        self._named = counted if named is None else named

    @property
    def stores_status(self) -> bool:
        """True if a member of the status has a column."""
        return self._mapper.stores_status

    @property
    def has_secret_time(self) -> bool:
        """True if the status has the time of the newest secret."""
        return self._mapper.has_secret_time

    @cached_property
    def _all(self) -> Select[*tuple[Any, ...]]:
        sorted_by = [self.view.c[self._columns[name]] for name in self.kind.in_order or (self.kind.keyed,)]
        return self._select(bindparam("tenant")).order_by(*sorted_by)

    async def insert(self, tenant: TenantId, db: Db, new: T) -> None:
        """Add an object.

        Raises:
            NameTaken: the tenant has an object of this kind and key.
            NotFound: there is no such tenant.
        """
        await db.execute(insert_into(self.table).values({self._owner: tenant, **self._new_values(new)}))

    async def get(self, tenant: TenantId, db: Db, key_or_id: str, *, locked: bool = False) -> T | None:
        """The object with this id or key, such as its name; an id takes precedence.

        `locked` holds the row until the transaction ends, so that no job changes its status meanwhile.
        """
        columns = self.view.c
        query = self._select(tenant).where(or_(columns.id == key_or_id, self._key == key_or_id))
        query = query.order_by((columns.id == key_or_id).desc()).limit(1)
        query = query.with_for_update(key_share=True) if locked else query
        row = (await db.execute(query)).mappings().one_or_none()
        return self._mapper.read(row) if row else None

    async def named(self, tenant: TenantId, db: Db, name: str, *, limit: int) -> Sequence[T]:
        """At most `limit` of the objects with this name, for kinds whose names are not unique."""
        columns = self.table.c
        query = select(self.table).where(*self._of(tenant), columns.name == name, *self._named)
        rows = await db.execute(query.order_by(columns.id).limit(limit))
        return [self._mapper.read(row) for row in rows.mappings()]

    async def page(
        self, tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
    ) -> Sequence[T]:
        """One page of the tenant's objects, by default sorted by their key."""
        query = select_page(self._select(tenant), self.view.c, self._key.name, after=after, limit=limit, order=order)
        return [self._mapper.read(row) for row in (await db.execute(query)).mappings()]

    async def load(self, tenant: TenantId, db: Db) -> Sequence[T]:
        """All objects of the tenant, in the declared order."""
        return [self._mapper.read(row) for row in (await db.execute(self._all, {"tenant": tenant})).mappings()]

    def read(self, row: Mapping[Any, Any]) -> T:
        """The object of a row that another query found."""
        return self._mapper.read(row)

    async def count(self, tenant: TenantId, db: Db) -> int:
        """Number of the tenant's objects to which the limit of the kind applies."""
        counted = select(func.count()).select_from(self.table).where(*self._of(tenant), *self._counted)
        return int((await db.execute(counted)).scalar_one())

    async def names_with(self, tenant: TenantId, db: Db, column: str, value: str) -> Sequence[str]:
        """The names, or other keys, of the objects with this value in a column, sorted."""
        query = select(self._key).where(*self._of(tenant, self.view), self.view.c[column] == value)
        return list((await db.execute(query.order_by(self._key))).scalars())

    async def save(self, tenant: TenantId, db: Db, changed: T, *, at: datetime | None = None) -> None:
        """Store the members that admins set, under the next version; that of a tenant is moved by its transaction.

        Raises:
            NotFound: the tenant has no such object.
        """
        moved = {_VERSION: self.table.c.get(_VERSION, literal(0)) + 1, _UPDATED: at or func.now()}
        own = {name: value for name, value in moved.items() if name in self.table.c}
        await self._update(tenant, db, changed.id, {**self._mapper.settable_values(changed), **own})

    async def write(self, tenant: TenantId, db: Db, one: T) -> None:
        """Store all members with the status, under the version and time that the object has; for jobs.

        Raises:
            NotFound: the tenant has no such object.
        """
        await self._update(tenant, db, one.id, self._all_values(one))

    async def note(self, tenant: TenantId, db: Db, of: str, status: object) -> None:
        """Store the status of the object with this id, for jobs: neither version nor time of the change move."""
        noted = update(self.table).where(*self._of(tenant), self.table.c.id == of)
        await db.execute(noted.values(self._mapper.columns_of_status(status)))

    async def note_secret(self, tenant: TenantId, db: Db, of: str) -> None:
        """Store that the object with this id has a new secret now, if the status of the kind shows the time."""
        if self.has_secret_time:
            noted = update(self.table).where(*self._of(tenant), self.table.c.id == of)
            await db.execute(noted.values({SECRET_TIME: func.now()}))

    async def remove(self, tenant: TenantId, db: Db, of: str) -> bool:
        """Delete the object with this id; True if it existed."""
        columns = self.table.c
        removed = delete(self.table).where(*self._of(tenant), columns.id == of).returning(columns.id)
        return (await db.execute(removed)).one_or_none() is not None

    def _new_values(self, new: T) -> dict[str, Any]:
        """The columns of a new object; the database sets the times that it does not have."""
        times = {name: getattr(new, name, None) or func.now() for name in TIMES if name in self.table.c}
        has_secret = self.has_secret_time and (self.kind.has_secret is None or self.kind.has_secret(new))
        return {**self._mapper.new_values(new), **times, **({SECRET_TIME: func.now()} if has_secret else {})}

    def _all_values(self, one: T) -> dict[str, Any]:
        """The columns of the members and the status, with the version and the time of the change."""
        values = {**self._mapper.settable_values(one), **self._mapper.columns_of_status(getattr(one, STATUS))}
        times = {_UPDATED: getattr(one, _UPDATED)} if _UPDATED in self.table.c else {}
        return {**values, **times, "version": one.version}

    async def _update(self, tenant: TenantId, db: Db, of: str, values: Mapping[str, Any]) -> None:
        columns = self.table.c
        saved = update(self.table).where(*self._of(tenant), columns.id == of).values(values)
        if (await db.execute(saved.returning(columns.id))).one_or_none() is None:
            raise NotFound(f"There is no such {self.kind.words}.")

    def _select(self, tenant: TenantId | BindParameter[Any]) -> Select[*tuple[Any, ...]]:
        """The statement that reads the rows of the kind."""
        return select(self.view).where(*self._of(tenant, self.view))

    def _of(
        self, tenant: TenantId | BindParameter[Any], within: FromClause | None = None
    ) -> Sequence[ColumnElement[bool]]:
        """The conditions for the rows of the kind: of this tenant, and with the fixed values."""
        columns = self.table.c if within is None else within.c
        fixed = {self._owner: tenant, **self._mapper.fixed}
        return [columns[name] == value for name, value in fixed.items()]


def rows_of(kind: Kind[T]) -> Rows[T]:
    """The rows of a kind without a module of its own: its table has the name of its paths, and a column per member.

    A table with a column `members` has the other members there, as one JSON object.
    """
    table = metadata.tables[kind.plural.replace("-", "_")]
    return Rows(kind, RowMapper(kind.of, table, packed="members" if "members" in table.c else ""))
