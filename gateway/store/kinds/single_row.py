"""The row of a tenant's singleton; a tenant without a row has the defaults of the class."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, cast

import msgspec
from sqlalchemy import RowMapping, Select, Table, bindparam, func, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.members.markers import Shape
from gateway.kinds.members import Member, members_of
from gateway.kinds.singleton import S
from gateway.store.engine import Db

_VERSION = "version"
_UPDATED = "updated_at"


class SingleRow(Generic[S]):
    """Statements over the row of one singleton, each for one tenant.

    A member without a column is an object whose members have columns. `columns` holds the names of columns that differ
    from those of the members; `reads` converts stored values that need more than the type of the member.
    """

    def __init__(
        self,
        of: type[S],
        table: Table,
        *,
        columns: Mapping[str, str] | None = None,
        reads: Mapping[str, Callable[[Any], Any]] | None = None,
        writes: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        self.of = of
        self.table = table
        self._columns = columns or {}
        self._reads = reads or {}
        self._writes = writes or {}

    @cached_property
    def _members(self) -> Sequence[Member]:
        return [one for one in members_of(self.of) if one.name != _VERSION]

    @cached_property
    def _of_tenant(self) -> Select[*tuple[Any, ...]]:
        return select(self.table).where(self.table.c.tenant_id == bindparam("tenant"))

    async def get(self, tenant: TenantId, db: Db) -> S:
        """The tenant's object; the default one without a row."""
        row = (await db.execute(self._of_tenant, {"tenant": tenant})).mappings().one_or_none()
        return self._read(row) if row else self.of()

    async def save(self, tenant: TenantId, db: Db, new: S) -> S:
        """Replace the tenant's object, and return it with its new version.

        Raises:
            NotFound: there is no such tenant.
        """
        reset = {one.name: one.default for one in self._members if Shape.RESET in one.marks}
        stored: Any = replace(new, **reset)
        values = self._values(stored)
        # A tenant without a row has version 1, so its first row is version 2.
        first = insert_into(self.table).values(tenant_id=tenant, version=self.of().version + 1, **values)
        changed = {**values, _VERSION: self.table.c.version + 1}
        written = first.on_conflict_do_update(index_elements=[self.table.c.tenant_id], set_=changed)
        version = (await db.execute(written.returning(self.table.c.version))).scalar_one()
        saved: S = replace(stored, version=int(version))
        return saved

    def _values(self, one: S) -> dict[str, Any]:
        values: dict[str, Any] = {_UPDATED: func.now()} if _UPDATED in self.table.c else {}
        for member in self._members:
            value = self._writes.get(member.name, msgspec.to_builtins)(getattr(one, member.name))
            column = self._columns.get(member.name, member.name)
            values |= {column: value} if column in self.table.c else value
        return values

    def _read(self, row: RowMapping) -> S:
        values = {one.name: self._member(one, row) for one in self._members}
        build = cast("Callable[..., S]", self.of)
        return build(version=row[_VERSION], **values)

    def _member(self, member: Member, row: RowMapping) -> Any:
        column = self._columns.get(member.name, member.name)
        if column not in self.table.c:
            nested = {one.name: row[one.name] for one in members_of(member.hint)}
            return msgspec.convert(nested, member.hint)
        value = row[column]
        if value is None and not member.is_nullable:
            return member.default
        read = self._reads.get(member.name)
        return msgspec.convert(value, member.hint) if read is None else read(value)
