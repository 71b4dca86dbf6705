"""Aliases: former names of imported tools, which can still be called until they expire."""

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import and_, bindparam, delete, func, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import SourceId, TenantId
from gateway.domain.overrides import ALIAS_LIFETIME, Alias
from gateway.store.engine import Db
from gateway.store.limits import MAX_ALIASES
from gateway.store.tables import aliases, operations

_ACTIVE = (
    select(aliases)
    .where(aliases.c.tenant_id == bindparam("tenant"), aliases.c.expires_at > func.now())
    .order_by(aliases.c.name)
)


async def add(tenant: TenantId, db: Db, source: SourceId, old: Mapping[str, str]) -> None:
    """Store old names, by identity, as aliases for operations of a source; they expire after `ALIAS_LIFETIME`.

    An alias of another operation is reassigned to this operation. Expired aliases, and all but the five newest aliases
    of each operation, are deleted.

    Raises:
        NotFound: the tenant has no such source.
    """
    if not old:
        return
    await db.execute(delete(aliases).where(aliases.c.tenant_id == tenant, aliases.c.expires_at <= func.now()))
    until = func.now() + ALIAS_LIFETIME
    shared = {"tenant_id": tenant, "source_id": source, "expires_at": until}
    for identity, name in sorted(old.items()):
        added = insert_into(aliases).values(name=name, identity=identity, **shared)
        taken = {"source_id": source, "identity": identity, "expires_at": until}
        await db.execute(added.on_conflict_do_update(index_elements=["tenant_id", "name"], set_=taken))
    await _drop_oldest(tenant, db, source)


async def active(tenant: TenantId, db: Db) -> Sequence[Alias]:
    """All unexpired aliases, sorted by name."""
    rows = await db.execute(_ACTIVE, {"tenant": tenant})
    return [
        Alias(
            name=row["name"],
            source=SourceId(row["source_id"]),
            identity=row["identity"],
            expires_at=row["expires_at"],
        )
        for row in rows.mappings()
    ]


async def resolve(tenant: TenantId, db: Db, named: Collection[str]) -> Mapping[str, str]:
    """Effective tool names by alias; expired aliases, and aliases whose operation is missing, are absent."""
    of_operation = and_(
        operations.c.tenant_id == aliases.c.tenant_id,
        operations.c.source_id == aliases.c.source_id,
        operations.c.identity == aliases.c.identity,
    )
    query = select(aliases.c.name, operations.c.tool).join_from(aliases, operations, of_operation)
    is_living = (aliases.c.tenant_id == tenant, aliases.c.expires_at > func.now(), aliases.c.name.in_(named))
    return {str(name): str(tool) for name, tool in await db.execute(query.where(*is_living))}


async def _drop_oldest(tenant: TenantId, db: Db, source: SourceId) -> None:
    newest_first = [aliases.c.expires_at.desc(), aliases.c.name]
    rank = func.row_number().over(partition_by=aliases.c.identity, order_by=newest_first).label("rank")
    ranked = select(aliases.c.name, rank).where(aliases.c.tenant_id == tenant, aliases.c.source_id == source).subquery()
    beyond = select(ranked.c.name).where(ranked.c.rank > MAX_ALIASES)
    await db.execute(delete(aliases).where(aliases.c.tenant_id == tenant, aliases.c.name.in_(beyond)))
