"""The registered secret keys, the replicas that have them, and the numbers of values that need each of them.

These queries serve the operator: they see no tenant's rows. SQL functions of the definer role count across tenants.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.tenancy.secret_keys import DependentKey, KeyHolder, KeyNeed, KnownKey
from gateway.store.engine import Db
from gateway.store.secret_keys.tables import secret_key_holders as holders
from gateway.store.secret_keys.tables import secret_keys

_LOCK = text("select pg_advisory_xact_lock(hashtext('gateway secret keys'))")
_USES = text("select kind, name, uses from secret_key_uses()")
_KEYS_UNDER = text("select slug, id, key_name, last_used_at from api_keys_under(:name, :most)")


async def lock(db: Db) -> None:
    """Make concurrent starts and changes wait for each other, until the transaction ends."""
    await db.execute(_LOCK)


async def known(db: Db) -> Mapping[str, KnownKey]:
    """The registered keys by name, the oldest first."""
    rows = await db.execute(select(secret_keys).order_by(secret_keys.c.known_since, secret_keys.c.name))
    return {row["name"]: KnownKey(**row) for row in rows.mappings()}


async def register(db: Db, names: Iterable[str], *, are_forgotten: bool = False) -> None:
    """Register keys. A registered key that was forgotten and is here again is known again."""
    at = func.now() if are_forgotten else None
    for name in names:
        new = insert_into(secret_keys).values(name=name, known_since=func.now(), forgotten_at=at)
        await db.execute(new.on_conflict_do_update(index_elements=["name"], set_={"forgotten_at": at}))


async def forget(db: Db, name: str) -> bool:
    """Mark a key as forgotten; True if it is registered."""
    changed = update(secret_keys).where(secret_keys.c.name == name)
    updated = await db.execute(changed.values(forgotten_at=func.now()).returning(secret_keys.c.name))
    return updated.one_or_none() is not None


async def retain(db: Db, name: str, sealed: bytes) -> None:
    """Store the keys that outlast a secret key."""
    await db.execute(update(secret_keys).where(secret_keys.c.name == name).values(retained=sealed))


async def needs(db: Db) -> Sequence[KeyNeed]:
    """The numbers of values that need each secret key, by kind; across tenants."""
    return [KeyNeed._make(row) for row in await db.execute(_USES)]


async def dependent_keys(db: Db, name: str | None, limit: int) -> Sequence[DependentKey]:
    """Valid API keys whose digest needs this secret key, or an unknown one; across tenants."""
    return [DependentKey._make(row) for row in await db.execute(_KEYS_UNDER, {"name": name, "most": limit})]


async def report(db: Db, replica: str, names: Sequence[str], *, kept_for: timedelta) -> None:
    """Store that a replica runs with these keys, and delete replicas that have not reported for this time."""
    new = insert_into(holders).values(replica=replica, names=list(names), seen_at=func.now())
    set_ = {"names": list(names), "seen_at": func.now()}
    await db.execute(new.on_conflict_do_update(index_elements=["replica"], set_=set_))
    await db.execute(delete(holders).where(holders.c.seen_at < func.now() - kept_for))


async def leave(db: Db, replica: str) -> None:
    """Delete the report of a replica that ends."""
    await db.execute(delete(holders).where(holders.c.replica == replica))


async def running(db: Db, *, within: timedelta) -> Sequence[KeyHolder]:
    """The replicas that have reported within this time."""
    query = select(holders.c.replica, holders.c.names).where(holders.c.seen_at >= func.now() - within)
    return [KeyHolder(row[0], tuple(row[1])) for row in await db.execute(query.order_by(holders.c.replica))]
