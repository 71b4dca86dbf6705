"""OAuth grants of people, with digests of their codes and refresh tokens.

A grant is also returned as a `Key`, the credential that its access tokens represent. Only `find` reads across tenants.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Text, bindparam, delete, exists, func, or_, select, true, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grants import Grant, GrantFilter, GrantSecrets
from gateway.domain.tenancy.keys import Key
from gateway.kinds.members import members_of
from gateway.store.engine import Db
from gateway.store.identity.tables import grants, keys
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.kinds.row_mapper import SECRET_TIME
from gateway.store.pagination import select_page

_columns = grants.c
_FOUND = (*(column.name for column in keys.c if column.name != SECRET_TIME), "slug")
_WANTED = func.unnest(bindparam("wanted", type_=ARRAY(Text))).table_valued("id").render_derived("wanted")
_EACH = func.grant_by_id(_WANTED.c.id).table_valued(*_FOUND).lateral()
_FIND = select(*_EACH.c).select_from(_WANTED).join(_EACH, true())
_SECRETS = [one.column for one in members_of(GrantSecrets)]


async def find(db: Db, ids: Collection[KeyId]) -> Mapping[KeyId, tuple[Key, str]]:
    """The existing grants among these ids, as credentials of their people; bypasses row-level security."""
    rows = await db.execute(_FIND, {"wanted": list(ids)})
    return {KeyId(row["id"]): (KEYS.read(row), str(row["slug"])) for row in rows.mappings()}


async def insert(tenant: TenantId, db: Db, grant: Grant, secrets: GrantSecrets) -> None:
    """Add a grant with its code.

    Raises:
        NotFound: its person or sign-in does not exist.
    """
    await db.execute(insert_into(grants).values(tenant_id=tenant, **columns_of(grant), **columns_of(secrets)))


async def get(tenant: TenantId, db: Db, grant: str, *, locked: bool = False) -> Grant | None:
    """The grant with this id; `locked` holds the row until the transaction ends."""
    query = select(grants).where(*_matches_id(tenant, grant))
    row = (await db.execute(query.with_for_update() if locked else query)).mappings().one_or_none()
    return None if row is None else read_record(Grant, row)


async def secrets_of(tenant: TenantId, db: Db, grant: str) -> GrantSecrets | None:
    """The digests of a grant's code and refresh tokens."""
    query = select(*(_columns[name] for name in _SECRETS)).where(*_matches_id(tenant, grant))
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else read_record(GrantSecrets, row)


async def use_code(tenant: TenantId, db: Db, grant: str, *, at: datetime) -> bool:
    """Mark the code of a grant as used; False if it was used before."""
    used = update(grants).where(*_matches_id(tenant, grant), _columns.code_used_at.is_(None))  # guard: code-used-once
    return (await db.execute(used.values(code_used_at=at).returning(_columns.id))).one_or_none() is not None


async def rotate(tenant: TenantId, db: Db, grant: Grant, secrets: GrantSecrets, *, before: bytes | None) -> bool:
    """Store the next refresh token of a grant, and the key to which it is bound.

    False if the current token is no longer `before`, or the grant is revoked.
    """
    is_current = _columns.refresh.is_(None) if before is None else _columns.refresh == before
    own = update(grants).where(*_matches_id(tenant, grant.id), is_current, _columns.revoked_at.is_(None))
    values = {name: getattr(secrets, name) for name in ("family", "refresh", "former_refresh", "rotated_at")}
    values |= {"used_at": grant.used_at, "idle_ends_at": grant.idle_ends_at, "thumbprint": grant.thumbprint}
    stored = own.values(**values)
    return (await db.execute(stored.returning(_columns.id))).one_or_none() is not None


async def note_use(tenant: TenantId, db: Db, grant: Grant) -> None:
    """Store the last use of a grant, and the new time at which it expires without use."""
    own = update(grants).where(*_matches_id(tenant, grant.id))
    await db.execute(own.values(used_at=grant.used_at, idle_ends_at=grant.idle_ends_at))


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED, person: KeyId | None = None
) -> Sequence[Grant]:
    """One page of the grants with issued tokens, of the tenant or of one person, by default sorted by id."""
    own = select(grants).where(_columns.tenant_id == tenant, _columns.code_used_at.is_not(None))
    own = own if person is None else own.where(_columns.person_id == person)
    query = select_page(own, _columns, "id", after=after, limit=limit, order=order)
    return [read_record(Grant, row) for row in (await db.execute(query)).mappings()]


async def exist_for(tenant: TenantId, db: Db, client: str) -> bool:
    """True if a person has authorized this client, and its tokens were issued; the grant may have ended since."""
    own = (_columns.tenant_id == tenant, _columns.client == client, _columns.code_used_at.is_not(None))
    found: bool = (await db.execute(select(exists().where(*own)))).scalar_one()
    return found


async def revoke(tenant: TenantId, db: Db, filters: GrantFilter, *, at: datetime, reason: str) -> Sequence[KeyId]:
    """Revoke the grants that match, and return the ids of those that were not revoked before.

    Raises:
        ValueError: no member of the filter is set.
    """
    members = {name: getattr(filters, name) for name in GrantFilter.__slots__}
    conditions = [_columns[name] == value for name, value in members.items() if value is not None]
    if not conditions:
        raise ValueError("all grants of a tenant are not revoked at once")
    own = update(grants).where(_columns.tenant_id == tenant, _columns.revoked_at.is_(None), *conditions)
    changed = await db.execute(own.values(revoked_at=at, revoked_for=reason).returning(_columns.id))
    return [KeyId(row) for row in changed.scalars()]


async def beyond(tenant: TenantId, db: Db, person: KeyId, *, limit: int) -> Sequence[KeyId]:
    """The ids of a person's unrevoked grants, except the `limit` newest ones."""
    own = (_columns.tenant_id == tenant, _columns.person_id == person, _columns.revoked_at.is_(None))
    query = select(_columns.id).where(*own).order_by(_columns.created_at.desc(), _columns.id).offset(limit)
    return [KeyId(row) for row in (await db.execute(query)).scalars()]


async def remove_ended(
    tenant: TenantId, db: Db, *, ended_before: datetime, codes_expired_before: datetime
) -> datetime | None:
    """Delete grants that ended up to `ended_before`, or whose unused code expired up to `codes_expired_before`; return
    the next end of a grant.
    """
    ended = or_(
        _columns.idle_ends_at <= ended_before,
        _columns.ends_at <= ended_before,
        _columns.revoked_at <= ended_before,
        _columns.code_used_at.is_(None) & (_columns.code_ends_at <= codes_expired_before),
    )
    await db.execute(delete(grants).where(_columns.tenant_id == tenant, ended))
    ends = func.least(_columns.idle_ends_at, _columns.ends_at, _columns.revoked_at)
    found: datetime | None = (await db.execute(select(func.min(ends)).where(_columns.tenant_id == tenant))).scalar_one()
    return found


async def credential(tenant: TenantId, db: Db, grant: KeyId) -> Key | None:
    """The grant as a credential of its person, as `find` returns it."""
    joined = (keys.c.tenant_id == _columns.tenant_id) & (keys.c.id == _columns.person_id)
    members = [column for column in keys.c if column.name not in {"id", "revoked_at"}]
    ended = func.least(keys.c.revoked_at, _columns.revoked_at).label("revoked_at")
    query = select(_columns.id, ended, *members).join_from(grants, keys, joined).where(*_matches_id(tenant, grant))
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else KEYS.read(row)


def _matches_id(tenant: TenantId, grant: str) -> tuple[Any, ...]:
    return (_columns.tenant_id == tenant, _columns.id == grant)
