"""Further queries of API keys. Only `find` reads across tenants; `find` and `get` also return people."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from sqlalchemy import ARRAY, ColumnElement, Text, and_, any_, bindparam, func, literal, or_, select, true, update

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.store.engine import Db
from gateway.store.identity.tables import keys
from gateway.store.kinds.keys import IS_VALID, KEYS
from gateway.store.kinds.row_mapper import SECRET_TIME

_FOUND = (*(column.name for column in keys.c if column.name != SECRET_TIME), "slug")
_WANTED = func.unnest(bindparam("wanted", type_=ARRAY(Text))).table_valued("id").render_derived("wanted")
_EACH = func.key_by_id(_WANTED.c.id).table_valued(*_FOUND).lateral()
_FIND = select(*_EACH.c).select_from(_WANTED).join(_EACH, true())
"""Built once, because every key in use is looked up every few seconds."""


async def find(db: Db, ids: Collection[KeyId]) -> Mapping[KeyId, tuple[Key, str]]:
    """The existing keys among these ids, each with its tenant's slug; bypasses row-level security."""
    rows = await db.execute(_FIND, {"wanted": list(ids)})
    return {KeyId(row["id"]): (KEYS.read(row), str(row["slug"])) for row in rows.mappings()}


async def get(tenant: TenantId, db: Db, key: KeyId) -> Key | None:
    """The tenant's key or person with this id."""
    rows = await db.execute(select(keys).where(keys.c.tenant_id == tenant, keys.c.id == key))
    row = rows.mappings().one_or_none()
    return KEYS.read(row) if row else None


async def of_ids(tenant: TenantId, db: Db, ids: Collection[KeyId]) -> Sequence[Key]:
    """The tenant's keys with these ids."""
    rows = await db.execute(select(keys).where(keys.c.tenant_id == tenant, keys.c.id.in_(list(ids))))
    return [KEYS.read(row) for row in rows.mappings()]


async def is_granted(tenant: TenantId, db: Db, scope: Scope, *, besides: KeyId | None = None) -> bool:
    """True if a key of the tenant that is neither revoked nor expired has the scope; `besides` does not count."""
    query = select(keys.c.id).where(*_is_valid_with(tenant, scope))
    if besides is not None:
        query = query.where(keys.c.id != besides)
    return (await db.execute(query.limit(1))).one_or_none() is not None


async def granted_to_others(
    tenant: TenantId, db: Db, scope: Scope, *, besides: str, limit: int
) -> Sequence[tuple[KeyId, str]]:
    """Ids and names of keys that `is_granted` counts, without those of the subject `besides`; the oldest first."""
    query = select(keys.c.id, keys.c.name).where(*_is_valid_with(tenant, scope), keys.c.subject != besides)
    rows = await db.execute(query.order_by(keys.c.created_at, keys.c.id).limit(limit))
    return [(KeyId(row.id), str(row.name)) for row in rows]


async def made_by(tenant: TenantId, db: Db, makers: Collection[str]) -> Sequence[Key]:
    """The valid keys, sorted by id, of which one of these principals may know a valid text."""
    names = bindparam("makers", list(makers), type_=ARRAY(Text))
    knows_old = and_(keys.c.former_made_by.op("&&", is_comparison=True)(names), keys.c.former_ends_at > func.now())
    is_made = or_(keys.c.made_by.op("&&", is_comparison=True)(names), knows_old)
    query = select(keys).where(keys.c.tenant_id == tenant, *IS_VALID, is_made).order_by(keys.c.id)
    return [KEYS.read(row) for row in (await db.execute(query)).mappings()]


def _is_valid_with(tenant: TenantId, scope: Scope) -> Sequence[ColumnElement[bool]]:
    return (keys.c.tenant_id == tenant, *IS_VALID, literal(scope.value) == any_(keys.c.scopes))


async def bound_to(tenant: TenantId, db: Db, profile: str) -> Sequence[str]:
    """The ids of the keys that are bound to a profile and are not revoked."""
    query = select(keys.c.id).where(keys.c.tenant_id == tenant, keys.c.profile == profile, keys.c.revoked_at.is_(None))
    return [str(key) for key in (await db.execute(query.order_by(keys.c.id))).scalars()]


async def note_use(tenant: TenantId, db: Db, hour: datetime, used: Collection[KeyId]) -> None:
    """Store the hour in which keys were used; the keys keep their versions."""
    is_later = or_(keys.c.last_used_at.is_(None), keys.c.last_used_at < hour)
    await db.execute(
        update(keys).where(keys.c.tenant_id == tenant, keys.c.id.in_(used), is_later).values(last_used_at=hour)
    )


async def renew_secret(tenant: TenantId, db: Db, key: KeyId, before: KeySecret, *, after: KeySecret) -> bool:
    """Replace the current or former secret `before` by `after`; False if it is no longer stored. The version stays."""
    for prefix in ("", "former_"):
        number = keys.c[f"{prefix or 'secret_'}number"]
        matches = (keys.c.tenant_id == tenant, keys.c.id == key, number == before.number)
        is_unchanged = keys.c[f"{prefix}digest"] == before.digest
        values = {f"{prefix}digest": after.digest, f"{prefix}pepper": after.pepper}
        changed = await db.execute(update(keys).where(*matches, is_unchanged).values(**values).returning(keys.c.id))
        if changed.one_or_none() is not None:
            return True
    return False
