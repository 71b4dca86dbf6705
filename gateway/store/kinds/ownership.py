"""Rows of the objects that sets of manifests own."""

from collections.abc import Collection, Sequence

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    LargeBinary,
    Table,
    Text,
    and_,
    delete,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.ownership import VOID, Ownership, OwningSet
from gateway.store.engine import Db
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.tables import metadata

owned_objects = Table(
    "owned_objects",
    metadata,
    Column("tenant_id", Text, primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("object_id", Text, primary_key=True),
    Column("set_name", Text, nullable=False),
    Column("is_operators", Boolean, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("secrets", LargeBinary),
    Column("applied_at", DateTime(timezone=True), nullable=False),
)
_columns = owned_objects.c


async def get(tenant: TenantId, db: Db, kind: str, of: str) -> Ownership | None:
    """The ownership of one object; None if no set owns it."""
    row = (await db.execute(select(owned_objects).where(*_is(tenant, kind, of)))).mappings().one_or_none()
    return read_record(Ownership, row) if row else None


async def find(tenant: TenantId, db: Db, owner: OwningSet, objects: Collection[tuple[str, str]]) -> Sequence[Ownership]:
    """All that a set owns, and the ownership of these objects, each given by kind and id."""
    is_owners = and_(_columns.set_name == owner.name, _columns.is_operators == owner.is_operators)
    is_wanted = or_(is_owners, tuple_(_columns.kind, _columns.object_id).in_(list(objects)))
    rows = await db.execute(select(owned_objects).where(_columns.tenant_id == tenant, is_wanted))
    return [read_record(Ownership, row) for row in rows.mappings()]


async def save(tenant: TenantId, db: Db, owned: Ownership) -> None:
    """Store the owner of an object, in place of another one."""
    changed = {**columns_of(owned, "kind", "id"), "applied_at": func.now()}
    added = insert_into(owned_objects).values(tenant_id=tenant, kind=owned.kind, object_id=owned.id, **changed)
    keys = [_columns.tenant_id, _columns.kind, _columns.object_id]
    await db.execute(added.on_conflict_do_update(index_elements=keys, set_=changed))


async def forget_secrets(tenant: TenantId, db: Db, kind: str, of: str) -> None:
    """Make the digest of the secrets that the owner applied void, because others may be stored now."""
    applied = update(owned_objects).where(*_is(tenant, kind, of), _columns.secrets.is_not(None))
    await db.execute(applied.values(secrets=VOID))


async def remove(tenant: TenantId, db: Db, kind: str, of: str) -> None:
    """Remove the ownership of an object, if it has one."""
    await db.execute(delete(owned_objects).where(*_is(tenant, kind, of)))


def _is(tenant: TenantId, kind: str, of: str) -> Sequence[ColumnElement[bool]]:
    return (_columns.tenant_id == tenant, _columns.kind == kind, _columns.object_id == of)
