"""A tenant's API keys. Only `find` reads across tenants; `find` and `get` also return people."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    RowMapping,
    Text,
    and_,
    any_,
    bindparam,
    delete,
    func,
    literal,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.identity.tables import keys
from gateway.store.kinds.record_rows import columns_of
from gateway.store.pagination import select_page

_KNOWN_SCOPES = frozenset(Scope)  # a later release may have stored others, which permit nothing here
_FOUND = (*(column.name for column in keys.c), "slug")
_WANTED = func.unnest(bindparam("wanted", type_=ARRAY(Text))).table_valued("id").render_derived("wanted")
_EACH = func.key_by_id(_WANTED.c.id).table_valued(*_FOUND).lateral()
_FIND = select(*_EACH.c).select_from(_WANTED).join(_EACH, true())
"""Built once, because every key in use is looked up every few seconds."""


async def find(db: Db, ids: Collection[KeyId]) -> Mapping[KeyId, tuple[Key, str]]:
    """The existing keys among these ids, each with its tenant's slug; bypasses row-level security."""
    rows = await db.execute(_FIND, {"wanted": list(ids)})
    return {KeyId(row["id"]): (read_key(row), str(row["slug"])) for row in rows.mappings()}


async def insert(key: Key, db: Db) -> None:
    """Add a key to its tenant.

    Raises:
        NotFound: there is no such tenant.
    """
    own = columns_of(key, "scopes", "secret", "former", "last_used_at")
    await db.execute(insert_into(keys).values(**own, scopes=_scopes(key), **_secrets(key)))


async def get(tenant: TenantId, db: Db, key: KeyId) -> Key | None:
    """The tenant's key with this id."""
    rows = await db.execute(select(keys).where(keys.c.tenant_id == tenant, keys.c.id == key))
    row = rows.mappings().one_or_none()
    return read_key(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Key]:
    """One page of the tenant's keys, by default sorted by id."""
    own = select(keys).where(keys.c.tenant_id == tenant, keys.c.issuer_id.is_(None))
    query = select_page(own, keys.c, "id", after=after, limit=limit, order=order)
    return [read_key(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of keys of the tenant, expired and revoked ones included."""
    counted = select(func.count()).select_from(keys).where(keys.c.tenant_id == tenant, keys.c.issuer_id.is_(None))
    return int((await db.execute(counted)).scalar_one())


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
    query = select(keys).where(*_is_valid(tenant), is_made).order_by(keys.c.id)
    return [read_key(row) for row in (await db.execute(query)).mappings()]


def _is_valid_with(tenant: TenantId, scope: Scope) -> Sequence[ColumnElement[bool]]:
    return (*_is_valid(tenant), literal(scope.value) == any_(keys.c.scopes))


def _is_valid(tenant: TenantId) -> Sequence[ColumnElement[bool]]:
    return (
        keys.c.tenant_id == tenant,
        keys.c.revoked_at.is_(None),
        or_(keys.c.expires_at.is_(None), keys.c.expires_at > func.now()),
    )


async def bound_to(tenant: TenantId, db: Db, profile: str) -> Sequence[str]:
    """The ids of the keys that are bound to a profile and are not revoked."""
    query = select(keys.c.id).where(keys.c.tenant_id == tenant, keys.c.profile == profile, keys.c.revoked_at.is_(None))
    return [str(key) for key in (await db.execute(query.order_by(keys.c.id))).scalars()]


async def save(key: Key, db: Db) -> Key:
    """Store the mutable members of a key, and return it with its new version.

    Raises:
        NotFound: the tenant has no such key.
    """
    changed = await db.execute(
        update(keys)
        .where(keys.c.tenant_id == key.tenant, keys.c.id == key.id)
        .values(
            name=key.name,
            scopes=_scopes(key),
            expires_at=key.expires_at,
            revoked_at=key.revoked_at,
            version=keys.c.version + 1,
            **_secrets(key),
        )
        .returning(keys.c.version)
    )
    version = changed.scalar_one_or_none()
    if version is None:
        raise NotFound("There is no such key.")
    return replace(key, version=int(version))


async def note_use(tenant: TenantId, db: Db, hour: datetime, used: Collection[KeyId]) -> None:
    """Store the hour in which keys were used; the keys keep their versions."""
    is_later = or_(keys.c.last_used_at.is_(None), keys.c.last_used_at < hour)
    await db.execute(
        update(keys).where(keys.c.tenant_id == tenant, keys.c.id.in_(used), is_later).values(last_used_at=hour)
    )


async def renew_secret(tenant: TenantId, db: Db, key: KeyId, before: KeySecret, after: KeySecret) -> bool:
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


async def remove(tenant: TenantId, db: Db, key: KeyId) -> bool:
    """Delete a key; True if it existed."""
    deleted = delete(keys).where(keys.c.tenant_id == tenant, keys.c.id == key).returning(keys.c.id)
    return (await db.execute(deleted)).one_or_none() is not None


def _scopes(key: Key) -> list[str]:
    return sorted(scope.value for scope in key.scopes)


def _secrets(key: Key) -> dict[str, Any]:
    secret, former = key.secret, key.former
    return {
        "digest": secret.digest,
        "pepper": secret.pepper,
        "secret_number": secret.number,
        "made_by": list(secret.made_by),
        "former_digest": None if former is None else former.digest,
        "former_pepper": None if former is None else former.pepper,
        "former_number": None if former is None else former.number,
        "former_ends_at": None if former is None else former.ends_at,
        "former_made_by": [] if former is None else list(former.made_by),
    }


def read_key(row: RowMapping) -> Key:
    """The key in a row of the table."""
    former = None
    if row["former_digest"] is not None:
        former = KeySecret(
            digest=row["former_digest"],
            pepper=row["former_pepper"],
            number=row["former_number"],
            ends_at=row["former_ends_at"],
            made_by=tuple(row["former_made_by"]),
        )
    return Key(
        tenant=TenantId(row["tenant_id"]),
        id=KeyId(row["id"]),
        name=row["name"],
        scopes=frozenset(Scope(scope) for scope in row["scopes"] if scope in _KNOWN_SCOPES),
        subject=row["subject"],
        profile=row["profile"],
        secret=KeySecret(
            digest=row["digest"], pepper=row["pepper"], number=row["secret_number"], made_by=tuple(row["made_by"])
        ),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        version=row["version"],
        issuer=None if row["issuer_id"] is None else IssuerId(row["issuer_id"]),
        former=former,
        last_used_at=row["last_used_at"],
    )
