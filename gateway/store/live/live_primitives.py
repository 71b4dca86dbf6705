"""Primitives that were discovered at a tenant's live sources, and their accepted definitions."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping, and_, delete, func, or_, select, tuple_, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.live_sources import LivePrimitive, RememberedPrimitive
from gateway.domain.updates.source_changes import FindingKind, TextFinding
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.tables import live_primitives, live_sources


async def of_source(tenant: TenantId, db: Db, source: LiveSourceId) -> Sequence[RememberedPrimitive]:
    """The stored primitives of a live source, sorted by family and name."""
    query = select(live_primitives).where(live_primitives.c.tenant_id == tenant, live_primitives.c.source_id == source)
    rows = await db.execute(query.order_by(live_primitives.c.family, live_primitives.c.name))
    return [_remembered(row) for row in rows.mappings()]


async def load(tenant: TenantId, db: Db) -> Mapping[LiveSourceId, Sequence[RememberedPrimitive]]:
    """Primitives of the enabled live sources that are present, or whose accepted definition reserves the name."""
    is_known = or_(live_primitives.c.is_present, live_primitives.c.accepted_digest.is_not(None))
    query = select(live_primitives).join(live_sources, _source_join())
    rows = await db.execute(
        query.where(live_primitives.c.tenant_id == tenant, live_sources.c.enabled, is_known).order_by(
            live_primitives.c.family, live_primitives.c.name
        )
    )
    found: dict[LiveSourceId, list[RememberedPrimitive]] = {}
    for row in rows.mappings():
        found.setdefault(LiveSourceId(row["source_id"]), []).append(_remembered(row))
    return found


async def apply_changes(
    tenant: TenantId,
    db: Db,
    source: LiveSourceId,
    *,
    removed: Sequence[RememberedPrimitive],
    added: Sequence[RememberedPrimitive],
) -> None:
    """Delete some primitives of a live source, and add others.

    Raises:
        NotFound: the tenant has no such live source.
    """
    if removed:
        is_gone = tuple_(live_primitives.c.family, live_primitives.c.remote).in_([_identity(one) for one in removed])
        await db.execute(delete(live_primitives).where(*_belongs_to(tenant, source), is_gone))
    if added:
        rows = [{"tenant_id": tenant, "source_id": source, **_row_values(one)} for one in added]
        await db.execute(insert_into(live_primitives), rows)


async def hide(tenant: TenantId, db: Db, source: LiveSourceId) -> int:
    """Mark the primitives of a live source as absent; return the number of visible ones."""
    before = select(func.count()).where(*_belongs_to(tenant, source), live_primitives.c.is_present, _is_accepted())
    seen = int((await db.execute(before)).scalar_one())
    await db.execute(update(live_primitives).where(*_belongs_to(tenant, source)).values(is_present=False))
    return seen


def _belongs_to(tenant: TenantId, source: LiveSourceId) -> Sequence[Any]:
    return live_primitives.c.tenant_id == tenant, live_primitives.c.source_id == source


def _source_join() -> Any:
    return and_(
        live_sources.c.tenant_id == live_primitives.c.tenant_id, live_sources.c.id == live_primitives.c.source_id
    )


def _is_accepted() -> Any:
    return live_primitives.c.digest == live_primitives.c.accepted_digest


def _identity(one: RememberedPrimitive) -> tuple[str, str]:
    return one.primitive.family.value, one.primitive.remote


def _row_values(one: RememberedPrimitive) -> Mapping[str, object]:
    own = {**columns_of(one.primitive, "is_held"), **columns_of(one, "primitive", "findings")}
    return own | {"findings": [_stored(finding) for finding in one.findings]}


def _stored(finding: TextFinding) -> Mapping[str, str]:
    members = {"kind": finding.kind.value, "pointer": finding.pointer, "excerpt": finding.excerpt}
    return members | {"pattern": finding.pattern}


def _remembered(row: RowMapping) -> RememberedPrimitive:
    primitive = read_record(LivePrimitive, row, is_held=row["digest"] != row["accepted_digest"])
    findings = tuple(TextFinding(**one | {"kind": FindingKind(one["kind"])}) for one in row["findings"])
    return read_record(RememberedPrimitive, row, primitive=primitive, findings=findings)
