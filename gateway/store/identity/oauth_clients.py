"""OAuth clients that are registered with the authorization server of a tenant."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.store.engine import Db
from gateway.store.identity.tables import oauth_clients
from gateway.store.pagination import select_page

_columns = oauth_clients.c


async def insert(tenant: TenantId, db: Db, client: OAuthClient) -> None:
    """Add a client."""
    await db.execute(insert_into(oauth_clients).values(tenant_id=tenant, **_row_values(client)))


async def get(tenant: TenantId, db: Db, client: str, *, locked: bool = False) -> OAuthClient | None:
    """The client with this id; `locked` holds the row until the transaction ends."""
    query = select(oauth_clients).where(*_matches_id(tenant, client))
    row = (await db.execute(query.with_for_update() if locked else query)).mappings().one_or_none()
    return None if row is None else _read(row)


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OAuthClient]:
    """One page of the tenant's clients, by default sorted by id."""
    own = select(oauth_clients).where(_columns.tenant_id == tenant)
    query = select_page(own, _columns, "id", after=after, limit=limit, order=order)
    return [_read(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db, kind: ClientKind) -> int:
    """Number of the tenant's clients of one kind."""
    own = (_columns.tenant_id == tenant, _columns.kind == kind.value)
    return int((await db.execute(select(func.count()).select_from(oauth_clients).where(*own))).scalar_one())


async def save(tenant: TenantId, db: Db, client: OAuthClient) -> None:
    """Update a client; the caller has set its new version."""
    columns = _row_values(client)
    await db.execute(update(oauth_clients).where(*_matches_id(tenant, columns.pop("id"))).values(**columns))


async def note_use(tenant: TenantId, db: Db, client: str, *, at: datetime) -> None:
    """Record the time of the client's latest authorization, without a change of its version."""
    await db.execute(update(oauth_clients).where(*_matches_id(tenant, client)).values(used_at=at))


async def remove(tenant: TenantId, db: Db, client: str) -> bool:
    """Delete a client; True if it existed."""
    deleted = delete(oauth_clients).where(*_matches_id(tenant, client)).returning(_columns.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def remove_unused(
    tenant: TenantId, db: Db, *, registered_before: datetime, used_before: datetime
) -> Sequence[str]:
    """Delete the clients that registered themselves up to `registered_before` and were not used after
    `used_before`.
    """
    is_idle = or_(_columns.used_at.is_(None), _columns.used_at <= used_before)
    own = (
        _columns.tenant_id == tenant,
        _columns.kind == ClientKind.DYNAMIC.value,
        _columns.created_at <= registered_before,
    )
    deleted = delete(oauth_clients).where(*own, is_idle).returning(_columns.id)
    return list((await db.execute(deleted)).scalars())


async def oldest_unused(tenant: TenantId, db: Db) -> OAuthClient | None:
    """The oldest client that registered itself and was never used."""
    own = (_columns.tenant_id == tenant, _columns.kind == ClientKind.DYNAMIC.value, _columns.used_at.is_(None))
    query = select(oauth_clients).where(*own).order_by(_columns.created_at, _columns.id).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else _read(row)


async def oldest_dates(tenant: TenantId, db: Db) -> tuple[datetime | None, datetime | None]:
    """Of the clients that registered themselves: the oldest registration without a use, and the oldest last use."""
    own = (_columns.tenant_id == tenant, _columns.kind == ClientKind.DYNAMIC.value)
    unused = func.min(_columns.created_at).filter(_columns.used_at.is_(None))
    row = (await db.execute(select(unused, func.min(_columns.used_at)).where(*own))).one()
    return row[0], row[1]


def _matches_id(tenant: TenantId, client: str) -> tuple[Any, ...]:
    return (_columns.tenant_id == tenant, _columns.id == client)


def _row_values(client: OAuthClient) -> dict[str, Any]:
    columns = {name: getattr(client, name) for name in OAuthClient.__slots__}
    return columns | {"kind": client.kind.value, "redirect_uris": list(client.redirect_uris)}


def _read(row: Mapping[Any, Any]) -> OAuthClient:
    return msgspec.convert({name: row[name] for name in OAuthClient.__slots__}, OAuthClient)
