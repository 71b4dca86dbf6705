"""The operations of a tenant's sources: what becomes its tools, and whose each tool name is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, RowMapping, Select, and_, delete, func, or_, select
from sqlalchemy import insert as insert_into
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.policy import Safety
from gateway.domain.sources import Exposure, StoredOperation
from gateway.domain.tools import Origin, Tool
from gateway.store.tables import operations, primitives, sources


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedOperation:
    """An operation as a tool, whether clients see that tool, and the operationId of its document."""

    tool: Tool
    operation_id: str | None
    is_listed: bool


async def insert_all(tenant: TenantId, db: AsyncSession, added: Sequence[StoredOperation]) -> None:
    """Add operations of a source.

    Raises:
        NameTaken: a tool name is in use in the tenant.
        NotFound: the tenant has no such source.
    """
    if added:
        await db.execute(insert_into(operations), [_values(tenant, operation) for operation in added])


async def remove_all(tenant: TenantId, db: AsyncSession, source: SourceId) -> int:
    """Remove all operations of a source and say how many there were."""
    gone = delete(operations).where(operations.c.tenant_id == tenant, operations.c.source_id == source)
    return len((await db.execute(gone.returning(operations.c.id))).all())


async def names(tenant: TenantId, db: AsyncSession) -> Mapping[str, str]:
    """Every tool name in use and its owner: `source:NAME`, or `custom` for a tool of the tenant's own."""
    imported = select(operations.c.tool, sources.c.name).join_from(operations, sources, _of_source())
    own = select(primitives.c.name).where(primitives.c.tenant_id == tenant, primitives.c.kind == "tool")
    owners = {str(tool): f"source:{name}" for tool, name in await db.execute(imported.where(_is_of(tenant)))}
    return {**owners, **{str(name): "custom" for name in (await db.execute(own)).scalars()}}


async def known_names(tenant: TenantId, db: AsyncSession, source: SourceId) -> Mapping[str, str]:
    """The tool name of each operation of a source, by the operation's identity."""
    wanted = select(operations.c.identity, operations.c.tool)
    rows = await db.execute(wanted.where(_is_of(tenant), operations.c.source_id == source))
    return {str(identity): str(tool) for identity, tool in rows}


async def tools(tenant: TenantId, db: AsyncSession) -> Sequence[Tool]:
    """All imported tools of the tenant, sorted by name; a source that is only queried shows none."""
    rows = await db.execute(_selected(tenant).where(_is_listed()).order_by(operations.c.tool))
    return [_tool(row) for row in rows.mappings()]


async def load(tenant: TenantId, db: AsyncSession) -> Sequence[LoadedOperation]:
    """All operations of the tenant, sorted by tool name, those of sources that are only queried among them."""
    rows = await db.execute(_selected(tenant).order_by(operations.c.tool))
    return [_loaded(row) for row in rows.mappings()]


async def find(
    tenant: TenantId, db: AsyncSession, named: Collection[str], keys: Collection[str]
) -> Sequence[LoadedOperation]:
    """Operations of the sources of these names that have one of these as operationId, identity or tool name."""
    columns = operations.c
    is_called = or_(columns.operation_id.in_(keys), columns.identity.in_(keys), columns.tool.in_(keys))
    wanted = _selected(tenant).where(sources.c.name.in_(named), is_called).order_by(columns.tool)
    return [_loaded(row) for row in (await db.execute(wanted)).mappings()]


async def owner(tenant: TenantId, db: AsyncSession, tool: str) -> str | None:
    """The name of the source whose operation has this tool name, listed or not; None when none has."""
    wanted = select(sources.c.name).join_from(operations, sources, _of_source())
    return (await db.execute(wanted.where(_is_of(tenant), operations.c.tool == tool))).scalar_one_or_none()


async def count(tenant: TenantId, db: AsyncSession) -> int:
    """How many operations the tenant has, of all sources."""
    return int((await db.execute(select(func.count()).where(_is_of(tenant)))).scalar_one())


async def page(tenant: TenantId, db: AsyncSession, *, after: str | None, limit: int) -> Sequence[Tool]:
    """The imported tools whose names follow `after`, in their order."""
    wanted = _selected(tenant).where(_is_listed()).order_by(operations.c.tool).limit(limit)
    rows = await db.execute(wanted.where(operations.c.tool > after) if after is not None else wanted)
    return [_tool(row) for row in rows.mappings()]


async def get(tenant: TenantId, db: AsyncSession, tool: str) -> Tool | None:
    """The imported tool of this name or operation's id."""
    is_it = or_(operations.c.tool == tool, operations.c.id == tool)
    wanted = _selected(tenant).where(_is_listed(), is_it).order_by((operations.c.id == tool).desc()).limit(1)
    row = (await db.execute(wanted)).mappings().one_or_none()
    return _tool(row) if row else None


async def levels(tenant: TenantId, db: AsyncSession, named: Collection[str]) -> Mapping[str, Safety]:
    """The safety levels of the imported tools of these names."""
    wanted = select(operations.c.tool, operations.c.safety).join_from(operations, sources, _of_source())
    rows = await db.execute(wanted.where(_is_of(tenant), _is_listed(), operations.c.tool.in_(named)))
    return {str(tool): Safety(level) for tool, level in rows}


def _selected(tenant: TenantId) -> Select[*tuple[object, ...]]:
    columns = operations.c
    return (
        select(
            columns.id,
            columns.source_id,
            columns.identity,
            columns.operation_id,
            columns.tool,
            columns.definition,
            columns.plan,
            columns.safety,
            columns.tags,
            sources.c.name.label("source_name"),
            sources.c.expose,
        )
        .join_from(operations, sources, _of_source())
        .where(_is_of(tenant))
    )


def _is_listed() -> ColumnElement[bool]:
    return sources.c.expose != Exposure.QUERY.value


def _of_source() -> ColumnElement[bool]:
    return and_(sources.c.tenant_id == operations.c.tenant_id, sources.c.id == operations.c.source_id)


def _is_of(tenant: TenantId) -> ColumnElement[bool]:
    return operations.c.tenant_id == tenant


def _values(tenant: TenantId, operation: StoredOperation) -> dict[str, object]:
    return {
        "tenant_id": tenant,
        "id": operation.id,
        "source_id": operation.source,
        "identity": operation.identity,
        "operation_id": operation.operation_id,
        "tool": operation.tool,
        "definition": operation.definition,
        "plan": operation.plan,
        "safety": operation.safety.value,
        "tags": list(operation.tags),
    }


def _loaded(row: RowMapping) -> LoadedOperation:
    is_listed = row["expose"] != Exposure.QUERY.value
    return LoadedOperation(tool=_tool(row), operation_id=row["operation_id"], is_listed=is_listed)


def _tool(row: RowMapping) -> Tool:
    return Tool(
        name=row["tool"],
        definition=row["definition"],
        safety=Safety(row["safety"]),
        safety_reasons=(),
        origin=Origin.SOURCE,
        operation=OperationId(row["id"]),
        source=SourceId(row["source_id"]),
        source_name=row["source_name"],
        identity=row["identity"],
        plan=row["plan"],
        tags=tuple(row["tags"]),
    )
