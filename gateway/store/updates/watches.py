"""A tenant's watches: the URL that is polled for each resource, and the result of the last poll."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import RowMapping, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId, WatchId
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.watches import Sighting, Watch
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.tables import watches


async def insert(tenant: TenantId, db: Db, watch: Watch) -> None:
    """Add a watch.

    Raises:
        NameTaken: the resource has a watch.
        NotFound: there is no such tenant.
    """
    key = {"tenant_id": tenant, "id": watch.id, "uri": watch.uri, "created_at": watch.created_at}
    await db.execute(insert_into(watches).values(**key, **_row_values(watch), **_poll_columns(watch.seen)))


async def get(tenant: TenantId, db: Db, uri_or_id: str) -> Watch | None:
    """The watch with this id or resource URI; an id takes precedence."""
    is_named = or_(watches.c.id == uri_or_id, watches.c.uri == uri_or_id)
    query = select(watches).where(watches.c.tenant_id == tenant, is_named)
    row = (await db.execute(query.order_by((watches.c.id == uri_or_id).desc()).limit(1))).mappings().one_or_none()
    return _watch(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Watch]:
    """One page of the tenant's watches, by default sorted by URI."""
    query = select_page(
        select(watches).where(watches.c.tenant_id == tenant), watches.c, "uri", after=after, limit=limit, order=order
    )
    return [_watch(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's watches."""
    counted = select(func.count()).select_from(watches).where(watches.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def of_credential(tenant: TenantId, db: Db, credential: str) -> Sequence[str]:
    """URIs of the resources whose watches name this credential."""
    query = select(watches.c.uri).where(watches.c.tenant_id == tenant, watches.c.credential == credential)
    return list((await db.execute(query.order_by(watches.c.uri))).scalars())


async def save(tenant: TenantId, db: Db, watch: Watch) -> None:
    """Store a watch under its next version, so that a running poll of the previous version stores nothing.

    Raises:
        NotFound: the tenant has no such watch.
    """
    matches = (watches.c.tenant_id == tenant, watches.c.id == watch.id)
    written = update(watches).where(*matches).values(**{**_row_values(watch), "version": watches.c.version + 1})
    changed = await db.execute(written.values(**_poll_columns(watch.seen)).returning(watches.c.id))
    if changed.one_or_none() is None:
        raise NotFound("There is no such watch.")


async def lock(tenant: TenantId, db: Db, watch: WatchId, *, version: int) -> bool:
    """Lock a watch until the transaction ends; False if it was changed or removed after this version."""
    matches = (watches.c.tenant_id == tenant, watches.c.id == watch, watches.c.version == version)
    return (await db.execute(select(watches.c.id).where(*matches).with_for_update())).one_or_none() is not None


async def note(tenant: TenantId, db: Db, watch: WatchId, seen: Sighting) -> None:
    """Store the result of a poll."""
    matches = (watches.c.tenant_id == tenant, watches.c.id == watch)
    await db.execute(update(watches).where(*matches).values(**_poll_columns(seen)))


async def remove(tenant: TenantId, db: Db, watch: WatchId) -> bool:
    """Delete a watch; True if it existed."""
    matches = (watches.c.tenant_id == tenant, watches.c.id == watch)
    return (await db.execute(delete(watches).where(*matches).returning(watches.c.id))).one_or_none() is not None


def _row_values(watch: Watch) -> dict[str, Any]:
    return {
        "url": watch.url,
        "credential": watch.credential,
        "interval_s": watch.interval_s,
        "version": watch.version,
        "updated_at": watch.updated_at,
    }


def _poll_columns(seen: Sighting) -> dict[str, Any]:
    return {
        "etag": seen.etag,
        "last_modified": seen.last_modified,
        "digest": seen.digest,
        "failures": seen.failures,
        "fault": seen.fault,
        "checked_at": seen.checked_at,
        "changed_at": seen.changed_at,
    }


def _watch(row: RowMapping) -> Watch:
    return Watch(
        id=WatchId(row["id"]),
        uri=row["uri"],
        url=row["url"],
        interval_s=row["interval_s"],
        credential=row["credential"],
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        seen=Sighting(
            etag=row["etag"],
            last_modified=row["last_modified"],
            digest=row["digest"],
            failures=row["failures"],
            fault=row["fault"],
            checked_at=row["checked_at"],
            changed_at=row["changed_at"],
        ),
    )
