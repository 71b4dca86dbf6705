"""The operations of a tenant's sources: what becomes its tools, and whose each tool name is."""

from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, RowMapping, and_, delete, select
from sqlalchemy import insert as insert_into
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.policy import Safety
from gateway.domain.sources import Exposure, StoredOperation
from gateway.domain.tools import Origin, Tool
from gateway.store.tables import operations, primitives, sources


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
    wanted = (
        select(
            operations.c.id,
            operations.c.source_id,
            operations.c.identity,
            operations.c.tool,
            operations.c.definition,
            operations.c.plan,
            operations.c.safety,
            sources.c.name.label("source_name"),
        )
        .join_from(operations, sources, _of_source())
        .where(_is_of(tenant), sources.c.expose != Exposure.QUERY.value)
        .order_by(operations.c.tool)
    )
    return [_tool(row) for row in (await db.execute(wanted)).mappings()]


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
    }


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
    )
