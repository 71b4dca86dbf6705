"""Read positions in an audit trail, and the entries after them.

A position is the last number read of each chain. Ids and times do not suffice, because writers commit at different
times: an entry with an older id can become visible after newer entries, even minutes later if it waited in Redis.
Within a chain, numbers become visible in order and without gaps, because a chain has one writer: a connection, or the
holder of the lock on the tenant's row. So a late entry is always after the position of its chain.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import ARRAY, BigInteger, Text, TextClause, bindparam, select, text
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import AuditSinkId, TenantId
from gateway.store.audit import entries
from gateway.store.audit.hash_chain import Link
from gateway.store.engine import Db
from gateway.store.tables import audit_places

Places = Mapping[str, int]
"""The last number that was read, by writer."""

_WRITERS = """
    writers as (
        (select writer from audit_entries where tenant_id = :tenant order by writer limit 1)
        union all
        select found.* from writers, lateral (
            select e.writer from audit_entries e
            where e.tenant_id = :tenant and e.writer > writers.writer order by e.writer limit 1
        ) found
    )
"""
_ENDS = text(f"""
    with recursive {_WRITERS}
    select writers.writer, last.seq from writers, lateral (
        select e.seq from audit_entries e where e.tenant_id = :tenant and e.writer = writers.writer
        order by e.seq desc limit 1
    ) last
""")  # noqa: S608  # a constant; each chain costs two steps in its index, however long it is


def _select_after(order: str) -> TextClause:
    """Entries after a position, in this order."""
    return text(f"""
        with recursive {_WRITERS}
        select behind.id, behind.at from writers
        left join unnest(:writers, :numbers) place (writer, seq) on place.writer = writers.writer,
        lateral (
            select e.id, e.at, e.seq from audit_entries e
            where e.tenant_id = :tenant and e.writer = writers.writer and e.seq > coalesce(place.seq, 0)
            order by e.seq limit :limit
        ) behind
        order by {order} limit :limit
    """).bindparams(bindparam("writers", type_=ARRAY(Text)), bindparam("numbers", type_=ARRAY(BigInteger)))  # noqa: S608


# The first entries of all chains come before the second ones, so that a busy chain does not delay the others.
_SELECT_AFTER = _select_after("behind.seq - coalesce(place.seq, 0), writers.writer")
_SELECT_OLDEST_AFTER = _select_after("behind.at")


async def ends(tenant: TenantId, db: Db) -> dict[str, int]:
    """The position at the end of the trail."""
    return {str(writer): int(seq) for writer, seq in await db.execute(_ENDS, {"tenant": tenant})}


async def behind(tenant: TenantId, db: Db, places: Places, *, limit: int) -> Sequence[Link]:
    """The next entries after the position, consecutive within each chain."""
    parameters = {"tenant": tenant, "writers": list(places), "numbers": list(places.values()), "limit": limit}
    found = [row.id for row in await db.execute(_SELECT_AFTER, parameters)]
    return await entries.of_ids(tenant, db, found) if found else []


async def oldest_behind(tenant: TenantId, db: Db, places: Places) -> datetime | None:
    """Time of the oldest entry after the position; None at the end of the trail."""
    parameters = {"tenant": tenant, "writers": list(places), "numbers": list(places.values()), "limit": 1}
    return next((row.at for row in await db.execute(_SELECT_OLDEST_AFTER, parameters)), None)


def after(places: Places, links: Sequence[Link]) -> dict[str, int]:
    """The new position in the chains to which these entries belong."""
    positions: dict[str, int] = {}
    for one in links:
        positions[one.row.writer] = max(one.row.seq, positions.get(one.row.writer, places.get(one.row.writer, 0)))
    return positions


async def load(tenant: TenantId, db: Db, sink: AuditSinkId) -> dict[str, int]:
    """The position of a sink."""
    columns = audit_places.c
    found = select(columns.writer, columns.seq).where(columns.tenant_id == tenant, columns.sink_id == sink)
    return {str(writer): int(seq) for writer, seq in await db.execute(found)}


async def save(tenant: TenantId, db: Db, sink: AuditSinkId, places: Places) -> None:
    """Store the position of a sink in these chains."""
    if not places:
        return
    rows = [{"tenant_id": tenant, "sink_id": sink, "writer": writer, "seq": seq} for writer, seq in places.items()]
    added = insert_into(audit_places)
    keys = [audit_places.c.tenant_id, audit_places.c.sink_id, audit_places.c.writer]
    await db.execute(added.on_conflict_do_update(index_elements=keys, set_={"seq": added.excluded.seq}), rows)
