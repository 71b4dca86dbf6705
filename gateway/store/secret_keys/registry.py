"""Registry of secret keys: their names, the replicas that run with them, and the values that need each key.

The queries run without a tenant, for the operator. SQL functions of the definer role count values of all tenants.
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
_COUNT_USES = text("select kind, name, uses from secret_key_uses()")
_KEYS_UNDER = text("select slug, id, key_name, last_used_at from api_keys_under(:name, :most)")


async def lock(db: Db) -> None:
    """Serialise concurrent starts and changes until the transaction ends."""
    await db.execute(_LOCK)


async def known(db: Db) -> Mapping[str, KnownKey]:
    """The registered keys by name, the oldest first."""
    rows = await db.execute(select(secret_keys).order_by(secret_keys.c.known_since, secret_keys.c.name))
    return {row["name"]: KnownKey(**row) for row in rows.mappings()}


async def register(db: Db, names: Iterable[str], *, are_forgotten: bool = False) -> None:
    """Register keys. A forgotten key that is configured again becomes known again, unless `are_forgotten`."""
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
    """Store the encrypted derived keys of a secret key, for use after its removal."""
    await db.execute(update(secret_keys).where(secret_keys.c.name == name).values(retained=sealed))


async def needs(db: Db) -> Sequence[KeyNeed]:
    """Numbers of values of all tenants that need each secret key, by kind."""
    return [KeyNeed._make(row) for row in await db.execute(_COUNT_USES)]


async def dependent_keys(db: Db, name: str | None, limit: int) -> Sequence[DependentKey]:
    """Valid API keys of all tenants whose digest needs this secret key, or an unknown one if `name` is None."""
    return [DependentKey(*row) for row in await db.execute(_KEYS_UNDER, {"name": name, "most": limit})]


async def report(db: Db, replica: str, names: Sequence[str], *, kept_for: timedelta) -> None:
    """Store the keys that a replica runs with, and delete replicas that have not reported for `kept_for`."""
    new = insert_into(holders).values(replica=replica, names=list(names), seen_at=func.now())
    set_ = {"names": list(names), "seen_at": func.now()}
    await db.execute(new.on_conflict_do_update(index_elements=["replica"], set_=set_))
    await db.execute(delete(holders).where(holders.c.seen_at < func.now() - kept_for))


async def leave(db: Db, replica: str) -> None:
    """Delete the report of a replica that stops."""
    await db.execute(delete(holders).where(holders.c.replica == replica))


async def running(db: Db, *, within: timedelta) -> Sequence[KeyHolder]:
    """The replicas that have reported within this time."""
    query = select(holders.c.replica, holders.c.names).where(holders.c.seen_at >= func.now() - within)
    return [KeyHolder(row[0], tuple(row[1])) for row in await db.execute(query.order_by(holders.c.replica))]
