"""People of a tenant: rows of `keys` that belong to an issuer."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import IssuerId, KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.keys import Key
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.identity.tables import keys
from gateway.store.kinds.keys import KEYS
from gateway.store.pagination import select_page


async def enter(tenant: TenantId, db: Db, person: Key) -> Key:
    """Add a person, or extend the expiry of the stored one; return the stored person.

    If the issuer was removed concurrently, the database raises an error.
    """
    new = insert_into(keys).values(
        tenant_id=tenant,
        id=person.id,
        name=person.name,
        scopes=sorted(scope.value for scope in person.scopes),
        subject=person.subject,
        profile=None,
        digest=person.secret.digest,
        secret_number=person.secret.number,
        created_at=person.created_at,
        expires_at=person.expires_at,
        revoked_at=person.revoked_at,
        version=person.version,
        issuer_id=person.issuer,
    )
    later = {"expires_at": func.greatest(keys.c.expires_at, new.excluded.expires_at)}
    stored = new.on_conflict_do_update(index_elements=("tenant_id", "id"), set_=later).returning(keys)
    return KEYS.read((await db.execute(stored)).mappings().one())


async def get(tenant: TenantId, db: Db, person: str) -> Key | None:
    """The person with this id."""
    query = select(keys).where(keys.c.tenant_id == tenant, keys.c.id == person, keys.c.issuer_id.is_not(None))
    row = (await db.execute(query)).mappings().one_or_none()
    return KEYS.read(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Key]:
    """One page of the tenant's people, by default sorted by id."""
    own = select(keys).where(keys.c.tenant_id == tenant, keys.c.issuer_id.is_not(None))
    query = select_page(own, keys.c, "id", after=after, limit=limit, order=order)
    return [KEYS.read(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of people of the tenant."""
    own = select(func.count()).select_from(keys).where(keys.c.tenant_id == tenant, keys.c.issuer_id.is_not(None))
    return int((await db.execute(own)).scalar_one())


async def forget_ended(tenant: TenantId, db: Db, *, now: datetime, kept: timedelta) -> int:
    """Delete people whose last token expired longer ago than `kept`, except denied ones; return their number."""
    is_over = (keys.c.issuer_id.is_not(None), keys.c.revoked_at.is_(None), keys.c.expires_at < now - kept)
    deleted = await db.execute(delete(keys).where(keys.c.tenant_id == tenant, *is_over).returning(keys.c.id))
    return len(deleted.all())


async def set_denied(tenant: TenantId, db: Db, person: KeyId, *, at: datetime | None) -> Key:
    """Deny a person from this time on; None allows the person again. Sessions of the old version end.

    Raises:
        NotFound: the tenant has no such person.
    """
    own = (keys.c.tenant_id == tenant, keys.c.id == person, keys.c.issuer_id.is_not(None))
    changed = update(keys).where(*own).values(revoked_at=at, version=keys.c.version + 1).returning(keys)
    row = (await db.execute(changed)).mappings().one_or_none()
    if row is None:
        raise NotFound("There is no such person.")
    return KEYS.read(row)


async def is_denied(tenant: TenantId, db: Db, subject: str) -> bool:
    """True if the person of this subject is denied."""
    denied = select(keys.c.id).where(
        keys.c.tenant_id == tenant,
        keys.c.subject == subject,
        keys.c.issuer_id.is_not(None),
        keys.c.revoked_at.is_not(None),
    )
    return (await db.execute(denied.limit(1))).one_or_none() is not None


async def ids_of_subject(tenant: TenantId, db: Db, subject: str) -> Sequence[KeyId]:
    """The ids of all keys of a subject, including the person's own row."""
    query = select(keys.c.id).where(keys.c.tenant_id == tenant, keys.c.subject == subject)
    return [KeyId(row) for row in (await db.execute(query)).scalars()]


async def ids_of_issuer(tenant: TenantId, db: Db, issuer: IssuerId, *, limit: int) -> Sequence[KeyId]:
    """The ids of at most `limit` people of an issuer."""
    query = select(keys.c.id).where(keys.c.tenant_id == tenant, keys.c.issuer_id == issuer).limit(limit)
    return [KeyId(row) for row in (await db.execute(query)).scalars()]
