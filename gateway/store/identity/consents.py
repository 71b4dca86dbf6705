"""Consents of people: each permits a client to receive tokens for a resource, at one redirect host."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grants import Consent
from gateway.store.engine import Db
from gateway.store.identity.tables import consents
from gateway.store.pagination import select_page

_columns = consents.c
_UNIQUE_COLUMNS = ("person", "client", "redirect_host", "resource")


async def enter(tenant: TenantId, db: Db, consent: Consent) -> Consent:
    """Store a consent; its scopes replace those of an earlier consent of the same person, client, host and resource."""
    new = insert_into(consents).values(tenant_id=tenant, **_row_values(consent))
    later = {name: new.excluded[name] for name in ("scopes", "client_name", "created_at")}
    stored = new.on_conflict_do_update(constraint="consents_of_person", set_=later).returning(consents)
    return _read((await db.execute(stored)).mappings().one())


async def find(tenant: TenantId, db: Db, wanted: Consent) -> Consent | None:
    """The stored consent of the same person, client, host and resource."""
    is_same = [_columns[_name(name)] == getattr(wanted, name) for name in _UNIQUE_COLUMNS]
    row = (await db.execute(select(consents).where(_columns.tenant_id == tenant, *is_same))).mappings().one_or_none()
    return None if row is None else _read(row)


async def get(tenant: TenantId, db: Db, consent: str) -> Consent | None:
    """The consent with this id."""
    query = select(consents).where(_columns.tenant_id == tenant, _columns.id == consent)
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else _read(row)


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED, person: KeyId | None = None
) -> Sequence[Consent]:
    """One page of the tenant's consents, or of one person's, by default sorted by id."""
    own = select(consents).where(_columns.tenant_id == tenant)
    own = own if person is None else own.where(_columns.person_id == person)
    query = select_page(own, _columns, "id", after=after, limit=limit, order=order)
    return [_read(row) for row in (await db.execute(query)).mappings()]


async def remove(tenant: TenantId, db: Db, consent: str) -> bool:
    """Delete a consent; True if it existed."""
    deleted = delete(consents).where(_columns.tenant_id == tenant, _columns.id == consent).returning(_columns.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def remove_client(tenant: TenantId, db: Db, client: str) -> None:
    """Delete the consents to a client."""
    await db.execute(delete(consents).where(_columns.tenant_id == tenant, _columns.client == client))


def _name(member: str) -> str:
    return "person_id" if member == "person" else member


def _row_values(consent: Consent) -> dict[str, Any]:
    columns = {_name(name): getattr(consent, name) for name in Consent.__slots__}
    return columns | {"scopes": list(consent.scopes)}


def _read(row: Mapping[Any, Any]) -> Consent:
    return msgspec.convert({name: row[_name(name)] for name in Consent.__slots__}, Consent)
