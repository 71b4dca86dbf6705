"""Idempotency records of a tenant: for each `Idempotency-Key`, the running attempt, then the encrypted response."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.http.idempotency import Attempt
from gateway.domain.identifiers import TenantId
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.tables import idempotency_records as records


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyRecord:
    """One record. `request` and `answer` are encrypted with the record's own data key in `wrapped`."""

    id: str
    is_operators: bool
    wrapped: bytes
    request: bytes
    attempt: str
    leased_until: datetime
    expires_at: datetime
    is_done: bool = False
    answer: bytes | None = None


async def insert(tenant: TenantId, db: Db, record: IdempotencyRecord) -> bool:
    """Add a record; False if a record with this id exists. Waits for a concurrent insert of the same id."""
    row = {name: getattr(record, name) for name in IdempotencyRecord.__slots__}
    added = insert_into(records).values(tenant_id=tenant, **row).on_conflict_do_nothing().returning(records.c.id)
    return (await db.execute(added)).one_or_none() is not None


async def get(tenant: TenantId, db: Db, record: str) -> IdempotencyRecord | None:
    """One record, locked until the transaction ends."""
    query = select(records).where(records.c.tenant_id == tenant, records.c.id == record).with_for_update()
    row = (await db.execute(query)).mappings().one_or_none()
    return IdempotencyRecord(**{name: row[name] for name in IdempotencyRecord.__slots__}) if row else None


async def lease(tenant: TenantId, db: Db, attempt: Attempt, *, until: datetime) -> None:
    """Assign the record to another attempt; the previous attempt can no longer commit."""
    matches = (records.c.tenant_id == tenant, records.c.id == attempt.record)
    await db.execute(update(records).where(*matches).values(attempt=attempt.id, leased_until=until))


async def commit(tenant: TenantId, db: Db, attempt: Attempt) -> bool:
    """Mark the request as done, in the transaction of its changes; False if another attempt holds the record."""
    changed = update(records).where(*_is_of(tenant, attempt)).values(is_done=True).returning(records.c.id)
    return (await db.execute(changed)).one_or_none() is not None


async def store_response(tenant: TenantId, db: Db, attempt: Attempt, answer: bytes) -> None:
    """Store the sealed response, and mark the request as done."""
    await db.execute(update(records).where(*_is_of(tenant, attempt)).values(is_done=True, answer=answer))


async def release(tenant: TenantId, db: Db, attempt: Attempt, *, now: datetime) -> None:
    """Delete the attempt's record, or end its lease if the request is done."""
    await db.execute(delete(records).where(*_is_of(tenant, attempt), records.c.is_done.is_(False)))
    await db.execute(update(records).where(*_is_of(tenant, attempt)).values(leased_until=now))


async def remove_expired(tenant: TenantId, db: Db, *, now: datetime) -> datetime | None:
    """Delete expired records; return the time at which the next record expires, or None if there are no records."""
    await db.execute(delete(records).where(records.c.tenant_id == tenant, records.c.expires_at <= now))
    found = await db.execute(select(func.min(records.c.expires_at)).where(records.c.tenant_id == tenant))
    next_at = found.scalar_one()
    return next_at if isinstance(next_at, datetime) else None


async def rewrap_some(tenant: TenantId, db: Db, sealer: EnvelopeCipher, *, limit: int) -> int:
    """Wrap the data keys of one batch of records with the first secret key; return the number of rewrapped keys."""
    query = select(records.c.id, records.c.wrapped).where(records.c.tenant_id == tenant)
    rows = (await db.execute(query)).all()
    stale = [(row[0], row[1]) for row in rows if sealer.can_open(row[1]) and not sealer.is_current(row[1])][:limit]
    for record, wrapped in stale:
        matches = (records.c.tenant_id == tenant, records.c.id == record, records.c.wrapped == wrapped)
        await db.execute(update(records).where(*matches).values(wrapped=sealer.rewrap(tenant, wrapped)))
    return len(stale)


async def usage(tenant: TenantId, db: Db, *, is_operators: bool) -> tuple[int, int]:
    """Number of records, and bytes of their sealed responses: of the operator, or of the tenant's own keys."""
    size = func.coalesce(func.sum(func.octet_length(records.c.answer)), 0)
    query = select(func.count(), size).where(records.c.tenant_id == tenant, records.c.is_operators == is_operators)
    count, usage_row = (await db.execute(query)).one()
    return int(count), int(usage_row)


def _is_of(tenant: TenantId, attempt: Attempt) -> tuple[ColumnElement[bool], ...]:
    return (records.c.tenant_id == tenant, records.c.id == attempt.record, records.c.attempt == attempt.id)
