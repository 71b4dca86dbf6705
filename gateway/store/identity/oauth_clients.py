"""Clients that registered themselves with the authorization server of a tenant."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, or_, select

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.grants import ClientKind, OAuthClient
from gateway.store.engine import Db
from gateway.store.identity.tables import oauth_clients
from gateway.store.kinds.oauth_clients import CLIENTS

_columns = oauth_clients.c


async def count_dynamic(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's clients that registered themselves."""
    return int((await db.execute(select(func.count()).select_from(oauth_clients).where(*_own(tenant)))).scalar_one())


async def remove_unused(
    tenant: TenantId, db: Db, *, registered_before: datetime, used_before: datetime
) -> Sequence[str]:
    """Delete the clients that registered themselves up to `registered_before` and were not used after
    `used_before`.
    """
    is_idle = or_(_columns.used_at.is_(None), _columns.used_at <= used_before)
    is_old = _columns.created_at <= registered_before
    deleted = delete(oauth_clients).where(*_own(tenant), is_old, is_idle).returning(_columns.id)
    return list((await db.execute(deleted)).scalars())


async def oldest_unused(tenant: TenantId, db: Db) -> OAuthClient | None:
    """The oldest client that registered itself and was never used."""
    query = select(oauth_clients).where(*_own(tenant), _columns.used_at.is_(None))
    row = (await db.execute(query.order_by(_columns.created_at, _columns.id).limit(1))).mappings().one_or_none()
    return None if row is None else CLIENTS.read(row)


async def oldest_dates(tenant: TenantId, db: Db) -> tuple[datetime | None, datetime | None]:
    """Of the clients that registered themselves: the oldest registration without a use, and the oldest last use."""
    unused = func.min(_columns.created_at).filter(_columns.used_at.is_(None))
    row = (await db.execute(select(unused, func.min(_columns.used_at)).where(*_own(tenant)))).one()
    return row[0], row[1]


def _own(tenant: TenantId) -> tuple[ColumnElement[bool], ...]:
    return (_columns.tenant_id == tenant, _columns.kind == ClientKind.DYNAMIC.value)
