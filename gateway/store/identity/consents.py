"""Consents of people: each permits a client to receive tokens for a resource, at one redirect host."""

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grants import Consent
from gateway.store.engine import Db
from gateway.store.identity.tables import consents
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.pagination import select_page

_columns = consents.c
_UNIQUE_COLUMNS = ("person_id", "client", "redirect_host", "resource")


async def enter(tenant: TenantId, db: Db, consent: Consent) -> Consent:
    """Store a consent; its scopes replace those of an earlier consent of the same person, client, host and resource."""
    new = insert_into(consents).values(tenant_id=tenant, **columns_of(consent))
    later = {name: new.excluded[name] for name in ("scopes", "client_name", "created_at")}
    stored = new.on_conflict_do_update(constraint="consents_of_person", set_=later).returning(consents)
    return read_record(Consent, (await db.execute(stored)).mappings().one())


async def find(tenant: TenantId, db: Db, wanted: Consent) -> Consent | None:
    """The stored consent of the same person, client, host and resource."""
    values = columns_of(wanted)
    is_same = [_columns[name] == values[name] for name in _UNIQUE_COLUMNS]
    row = (await db.execute(select(consents).where(_columns.tenant_id == tenant, *is_same))).mappings().one_or_none()
    return None if row is None else read_record(Consent, row)


async def get(tenant: TenantId, db: Db, consent: str) -> Consent | None:
    """The consent with this id."""
    query = select(consents).where(_columns.tenant_id == tenant, _columns.id == consent)
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else read_record(Consent, row)


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED, person: KeyId | None = None
) -> Sequence[Consent]:
    """One page of the tenant's consents, or of one person's, by default sorted by id."""
    own = select(consents).where(_columns.tenant_id == tenant)
    own = own if person is None else own.where(_columns.person_id == person)
    query = select_page(own, _columns, "id", after=after, limit=limit, order=order)
    return [read_record(Consent, row) for row in (await db.execute(query)).mappings()]


async def remove(tenant: TenantId, db: Db, consent: str) -> bool:
    """Delete a consent; True if it existed."""
    deleted = delete(consents).where(_columns.tenant_id == tenant, _columns.id == consent).returning(_columns.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def remove_client(tenant: TenantId, db: Db, client: str) -> None:
    """Delete the consents to a client."""
    await db.execute(delete(consents).where(_columns.tenant_id == tenant, _columns.client == client))
