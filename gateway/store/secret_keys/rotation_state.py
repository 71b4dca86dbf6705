"""State of the re-encryption of an installation: its progress, and the lease of the replica that runs it.

The table has one row. PostgreSQL's clock decides on leases. Only the holder of the lease can store progress.
"""

from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.tenancy.secret_keys import RotationState
from gateway.store.engine import Db
from gateway.store.secret_keys.tables import secret_rotation as rotation

_ROW_ID = 1


async def get(db: Db) -> RotationState | None:
    """The last re-encryption; None if there was none."""
    row = (await db.execute(select(rotation))).mappings().one_or_none()
    return None if row is None else RotationState(**{name: row[name] for name in RotationState.__slots__})


async def start(db: Db, key_name: str) -> None:
    """Start a re-encryption; it replaces the last one. The caller holds the lock of the registry."""
    fresh: dict[str, Any] = {
        "key_name": key_name,
        "started_at": func.now(),
        "finished_at": None,
        "holder": "",
        "leased_until": func.now(),
        "after_slug": "",
        "tenants_done": 0,
        "values_done": 0,
        "unreadable": 0,
        "fault": None,
    }
    new = insert_into(rotation).values(id=_ROW_ID, **fresh)
    await db.execute(new.on_conflict_do_update(index_elements=["id"], set_=fresh))


async def take(db: Db, key_name: str, holder: str, *, lease: timedelta) -> RotationState | None:
    """Lease the unfinished re-encryption under this key; None if there is none, or another replica holds its lease."""
    is_free = or_(rotation.c.leased_until <= func.now(), rotation.c.holder == holder)
    matches = (rotation.c.key_name == key_name, rotation.c.finished_at.is_(None), is_free)
    values = {"holder": holder, "leased_until": func.now() + lease}
    updated = await db.execute(update(rotation).where(*matches).values(**values).returning(rotation.c.id))
    return None if updated.one_or_none() is None else await get(db)


async def advance(db: Db, holder: str, *, lease: timedelta, **progress: Any) -> bool:
    """Store progress and extend the lease; False if the holder has lost the lease."""
    values = {**progress, "leased_until": func.now() + lease}
    changed = update(rotation).where(*_is_held(holder)).values(**values).returning(rotation.c.id)
    return (await db.execute(changed)).one_or_none() is not None


async def finish(db: Db, holder: str) -> bool:
    """Mark the re-encryption as finished; False if the holder has lost the lease."""
    values = {"finished_at": func.now(), "holder": "", "fault": None}
    changed = update(rotation).where(*_is_held(holder)).values(**values).returning(rotation.c.id)
    return (await db.execute(changed)).one_or_none() is not None


def _is_held(holder: str) -> tuple[ColumnElement[bool], ...]:
    return (rotation.c.holder == holder, rotation.c.finished_at.is_(None))  # guard: rotation-lease-held
