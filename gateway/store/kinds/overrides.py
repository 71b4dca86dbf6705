"""Rows of overrides, one for each operation; a row remains if its operation disappears.

Rows are read together with the source and the tool. The name that an override gives has a column of its own, so that a
constraint of the database keeps names unique; all other changes are one JSON object.
"""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy import FromClause, and_, func, select

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.overrides import CHANGES, Hints, Override, ResultParts, given_members
from gateway.kinds.sources import OVERRIDE
from gateway.store.engine import Db
from gateway.store.kinds.row_mapper import RowMapper
from gateway.store.kinds.rows import Rows
from gateway.store.tables import operations, overrides, sources

_is_of_source = and_(sources.c.tenant_id == overrides.c.tenant_id, sources.c.id == overrides.c.source_id)
_is_of_operation = and_(
    operations.c.tenant_id == overrides.c.tenant_id,
    operations.c.source_id == overrides.c.source_id,
    operations.c.identity == overrides.c.identity,
)
_VIEW = (
    select(
        overrides,
        sources.c.name.label("source"),
        operations.c.tool,
        func.coalesce(operations.c.tool, overrides.c.name, overrides.c.id).label("key"),
    )
    .join_from(overrides, sources, _is_of_source)
    .outerjoin(operations, _is_of_operation)
    .subquery("overrides_of_tools")
)


class OverrideRows(Rows[Override]):
    """The rows of overrides."""

    async def of_source(self, tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, Override]:
        """All overrides of a source, by the identity of their operation."""
        found = await self._of_source(tenant, db, source, after=None, limit=None)
        return {one.operation: one for one in found}

    async def page_of_source(
        self, tenant: TenantId, db: Db, source: SourceId, *, after: str | None, limit: int
    ) -> Sequence[Override]:
        """One page of a source's overrides sorted by operation identity."""
        return await self._of_source(tenant, db, source, after=after, limit=limit)

    async def given_names(self, tenant: TenantId, db: Db) -> Mapping[str, str]:
        """All tool names that overrides give, each with the name of its source; missing operations are included."""
        columns = self.view.c
        query = select(columns.name, columns.source).where(*self._of(tenant, self.view), columns.name.is_not(None))
        return {str(name): str(source) for name, source in await db.execute(query)}

    async def _of_source(
        self, tenant: TenantId, db: Db, source: SourceId, *, after: str | None, limit: int | None
    ) -> Sequence[Override]:
        identity = self.view.c.identity
        query = self._select(tenant).where(self.view.c.source_id == source).order_by(identity).limit(limit)
        rows = await db.execute(query if after is None else query.where(identity > after))
        return [self.read(row) for row in rows.mappings()]


class _Mapper(RowMapper[Override]):
    """The columns of overrides, and those of their sources and tools, which are only read."""

    @property
    def view(self) -> FromClause:
        """The statement that is read."""
        return _VIEW


def _write_body(one: Override) -> bytes:
    """The changes without null members, which are absent in rows of every release."""
    values = {name: value for name in CHANGES if (value := getattr(one, name)) is not None}
    parts = {name: given_members(value) for name, value in values.items() if isinstance(value, Hints | ResultParts)}
    return msgspec.json.encode({**values, **parts})


OVERRIDES = OverrideRows(OVERRIDE, _Mapper(Override, overrides, packed="body", copies={"body": _write_body}))
