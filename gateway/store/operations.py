"""Operations of a tenant's sources, from which imported tools are built, and the owner of each tool name.

The column `tool` contains the effective name of a tool. The column `definition` contains the definition and name from
the document, even if an override changes them.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    RowMapping,
    Select,
    and_,
    bindparam,
    case,
    delete,
    or_,
    select,
    update,
)
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.overrides import LoadedOperation, Override
from gateway.domain.sources import Exposure, StoredOperation
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.kinds.overrides import OVERRIDES
from gateway.store.kinds.record_rows import columns_of
from gateway.store.pagination import select_page
from gateway.store.tables import operations, overrides, primitives, sources

_OVERRIDE_PREFIX = "override_"
_OVERRIDE_COLUMNS = [overrides.c[name] for name in ("id", "name", "body", "version", "created_at", "updated_at")]


class _NamedDefinition(msgspec.Struct):
    name: str


_decode_name = msgspec.json.Decoder(_NamedDefinition).decode


async def insert_all(tenant: TenantId, db: Db, added: Sequence[StoredOperation]) -> None:
    """Add operations of a source.

    Raises:
        NameTaken: a tool name is in use in the tenant.
        NotFound: the tenant has no such source.
    """
    if added:
        await db.execute(insert_into(operations), [{"tenant_id": tenant, **columns_of(one)} for one in added])


async def remove_all(tenant: TenantId, db: Db, source: SourceId) -> int:
    """Remove all operations of a source; return their number."""
    deleted = delete(operations).where(operations.c.tenant_id == tenant, operations.c.source_id == source)
    return len((await db.execute(deleted.returning(operations.c.id))).all())


async def names(tenant: TenantId, db: Db) -> Mapping[str, str]:
    """Names of stored tools with their owners: `source:NAME`, or `custom` for a tool that the tenant defined."""
    imported = select(operations.c.tool, sources.c.name).join_from(operations, sources, _of_source())
    own = select(primitives.c.name).where(primitives.c.tenant_id == tenant, primitives.c.kind == "tool")
    owners = {str(tool): f"source:{name}" for tool, name in await db.execute(imported.where(_is_of(tenant)))}
    return {**owners, **{str(name): "custom" for name in (await db.execute(own)).scalars()}}


async def names_of(tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, str]:
    """The effective tool names of a source, by the identity of the operation."""
    query = select(operations.c.identity, operations.c.tool)
    rows = await db.execute(query.where(_is_of(tenant), operations.c.source_id == source))
    return {str(identity): str(tool) for identity, tool in rows}


async def known_names(tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, str]:
    """The tool names that a source's operations would have without overrides, by the identity of the operation."""
    columns = operations.c
    defined = case((overrides.c.name.is_not(None), columns.definition))  # null unless the override changes the name
    query = select(columns.identity, columns.tool, defined).select_from(
        operations.outerjoin(overrides, _of_operation())
    )
    rows = await db.execute(query.where(_is_of(tenant), columns.source_id == source))
    return {
        str(identity): document_name(definition) if definition else str(tool) for identity, tool, definition in rows
    }


async def rename(tenant: TenantId, db: Db, operation: OperationId, tool: str) -> None:
    """Rename an operation's tool.

    Raises:
        NotFound: the tenant has no such operation.
        NameTaken: another imported tool of the tenant has the name.
    """
    matches = (_is_of(tenant), operations.c.id == operation)
    renamed = update(operations).where(*matches).values(tool=tool).returning(operations.c.id)
    if (await db.execute(renamed)).one_or_none() is None:
        raise NotFound("There is no such operation.")


def document_name(definition: bytes) -> str:
    """The name of a tool in its document's definition."""
    return _decode_name(definition).name


async def load(tenant: TenantId, db: Db) -> Sequence[LoadedOperation]:
    """All operations of the tenant, query-only sources included, sorted by tool name."""
    rows = await db.execute(_BY_TOOL, {"tenant": tenant})
    return [_from_row(row) for row in rows.mappings()]


async def of_source(tenant: TenantId, db: Db, source: SourceId) -> Sequence[LoadedOperation]:
    """All operations of one source, sorted by tool name."""
    rows = await db.execute(
        _select_operations(tenant).where(operations.c.source_id == source).order_by(operations.c.tool)
    )
    return [_from_row(row) for row in rows.mappings()]


async def find(tenant: TenantId, db: Db, named: Collection[str], keys: Collection[str]) -> Sequence[LoadedOperation]:
    """Operations of the sources `named` whose operationId, identity or tool name is one of `keys`."""
    columns = operations.c
    is_called = or_(columns.operation_id.in_(keys), columns.identity.in_(keys), columns.tool.in_(keys))
    query = _select_operations(tenant).where(sources.c.name.in_(named), is_called).order_by(columns.tool)
    return [_from_row(row) for row in (await db.execute(query)).mappings()]


async def find_identity(tenant: TenantId, db: Db, source: str, identity: str) -> LoadedOperation | None:
    """The operation of this identity in the source of this name."""
    query = _select_operations(tenant).where(sources.c.name == source, operations.c.identity == identity)
    row = (await db.execute(query)).mappings().one_or_none()
    return _from_row(row) if row else None


async def input_schema(tenant: TenantId, db: Db, operation: OperationId) -> bytes | None:
    """The full input schema of an operation whose tool lists a shortened schema; None if it is not shortened."""
    query = select(operations.c.input_schema).where(_is_of(tenant), operations.c.id == operation)
    found: bytes | None = (await db.execute(query)).scalar_one_or_none()
    return found


async def input_schemas(tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, bytes]:
    """The full input schemas of a source's operations with shortened schemas, by the identity of the operation."""
    query = select(operations.c.identity, operations.c.input_schema).where(_is_of(tenant))
    rows = await db.execute(query.where(operations.c.source_id == source, operations.c.input_schema.is_not(None)))
    return {str(identity): bytes(schema) for identity, schema in rows}


async def has_shortened(tenant: TenantId, db: Db) -> bool:
    """True if a tool of a source that is not query-only lists a shortened input schema."""
    query = select(operations.c.id).select_from(operations.join(sources, _of_source()))
    found = query.where(_is_of(tenant), _is_listed(), operations.c.input_schema.is_not(None)).limit(1)
    return (await db.execute(found)).first() is not None


async def find_named(tenant: TenantId, db: Db, name_or_id: str) -> LoadedOperation | None:
    """The operation with this id or tool name, including those of query-only sources; an id takes precedence."""
    matches = or_(operations.c.tool == name_or_id, operations.c.id == name_or_id)
    query = _select_operations(tenant).where(matches).order_by((operations.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return _from_row(row) if row else None


async def owner(tenant: TenantId, db: Db, tool: str) -> str | None:
    """The name of the source with this tool name; None if no operation and no override of a source has the name.

    Query-only sources count, and so do overrides whose operation is missing.
    """
    query = select(sources.c.name).join_from(operations, sources, _of_source())
    kept = select(sources.c.name).where(sources.c.tenant_id == tenant).join(overrides, _is_overridden())
    known = query.where(_is_of(tenant), operations.c.tool == tool).union_all(kept.where(overrides.c.name == tool))
    return (await db.execute(known.limit(1))).scalar_one_or_none()


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[LoadedOperation]:
    """One page of the operations of sources that are not query-only, by default sorted by tool name."""
    query = select_page(
        _select_operations(tenant).where(_is_listed()), operations.c, "tool", after=after, limit=limit, order=order
    )
    return [_from_row(row) for row in (await db.execute(query)).mappings()]


async def levels(tenant: TenantId, db: Db, named: Collection[str]) -> Mapping[str, Safety]:
    """Effective safety levels of the imported tools of these names, without query-only sources."""
    query = _select_operations(tenant).where(_is_listed(), operations.c.tool.in_(named))
    found = [_from_row(row) for row in (await db.execute(query)).mappings()]
    return {one.tool.name: _level(one) for one in found}


def _level(loaded: LoadedOperation) -> Safety:
    declared = None if loaded.override is None else loaded.override.safety
    return declared or loaded.tool.safety


def _select_operations(tenant: TenantId | BindParameter[str]) -> Select[*tuple[object, ...]]:
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
            *(column.label(f"{_OVERRIDE_PREFIX}{column.name}") for column in _OVERRIDE_COLUMNS),
        )
        .select_from(operations.join(sources, _of_source()).outerjoin(overrides, _of_operation()))
        .where(_is_of(tenant))
    )


def _of_operation() -> ColumnElement[bool]:
    return and_(
        overrides.c.tenant_id == operations.c.tenant_id,
        overrides.c.source_id == operations.c.source_id,
        overrides.c.identity == operations.c.identity,
    )


def _is_overridden() -> ColumnElement[bool]:
    return and_(overrides.c.tenant_id == sources.c.tenant_id, overrides.c.source_id == sources.c.id)


def _is_listed() -> ColumnElement[bool]:
    return sources.c.expose != Exposure.QUERY.value


def _of_source() -> ColumnElement[bool]:
    return and_(sources.c.tenant_id == operations.c.tenant_id, sources.c.id == operations.c.source_id)


def _is_of(tenant: TenantId | BindParameter[str]) -> ColumnElement[bool]:
    return operations.c.tenant_id == tenant


_BY_TOOL = _select_operations(bindparam("tenant")).order_by(operations.c.tool)


def _from_row(row: RowMapping) -> LoadedOperation:
    is_listed = row["expose"] != Exposure.QUERY.value
    override = None if row[f"{_OVERRIDE_PREFIX}id"] is None else _override(row)
    return LoadedOperation(tool=_tool(row), operation_id=row["operation_id"], is_listed=is_listed, override=override)


def _override(row: RowMapping) -> Override:
    own = {column.name: row[f"{_OVERRIDE_PREFIX}{column.name}"] for column in _OVERRIDE_COLUMNS}
    return OVERRIDES.read({**row, **own, "source": row["source_name"], "key": row["tool"]})


def _tool(row: RowMapping) -> Tool:
    return Tool(
        name=row["tool"],
        definition=row["definition"],
        safety=Safety(row["safety"]),
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        operation=OperationId(row["id"]),
        source=SourceId(row["source_id"]),
        source_name=row["source_name"],
        identity=row["identity"],
        plan=row["plan"],
        tags=tuple(row["tags"]),
    )
