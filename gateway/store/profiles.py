"""A tenant's profiles: named selections of its primitives, each with its rules as one JSON value."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import RowMapping, bindparam, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import ProfileId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.tables import profiles


class _Rules(msgspec.Struct, omit_defaults=True):
    include: tuple[Rule, ...] = ()
    exclude: tuple[Rule, ...] = ()
    structured_once: bool = False
    selects_fields: bool = False
    summary_threshold: int = 0


_decode = msgspec.json.Decoder(_Rules).decode

_BY_NAME = select(profiles).where(profiles.c.tenant_id == bindparam("tenant")).order_by(profiles.c.name)


async def insert(tenant: TenantId, db: Db, profile: Profile) -> None:
    """Add a profile.

    Raises:
        NameTaken: the tenant has a profile of this name.
        NotFound: there is no such tenant.
    """
    added = insert_into(profiles).values(
        tenant_id=tenant, id=profile.id, version=profile.version, created_at=func.now(), **_row_values(profile)
    )
    await db.execute(added)


async def get(tenant: TenantId, db: Db, name_or_id: str) -> Profile | None:
    """The profile with this id or name; an id takes precedence."""
    query = select(profiles).where(
        profiles.c.tenant_id == tenant, or_(profiles.c.id == name_or_id, profiles.c.name == name_or_id)
    )
    row = (await db.execute(query.order_by((profiles.c.id == name_or_id).desc()).limit(1))).mappings().one_or_none()
    return _profile(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Profile]:
    """One page of the tenant's profiles, by default sorted by name."""
    query = select_page(
        select(profiles).where(profiles.c.tenant_id == tenant),
        profiles.c,
        "name",
        after=after,
        limit=limit,
        order=order,
    )
    return [_profile(row) for row in (await db.execute(query)).mappings()]


async def load(tenant: TenantId, db: Db) -> Sequence[Profile]:
    """All profiles of the tenant, sorted by name."""
    rows = await db.execute(_BY_NAME, {"tenant": tenant})
    return [_profile(row) for row in rows.mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's profiles."""
    counted = select(func.count()).select_from(profiles).where(profiles.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def save(tenant: TenantId, db: Db, profile: Profile) -> None:
    """Store a profile under its next version.

    Raises:
        NotFound: the tenant has no such profile.
    """
    matches = (profiles.c.tenant_id == tenant, profiles.c.id == profile.id)
    written = update(profiles).where(*matches).values(version=profiles.c.version + 1, **_row_values(profile))
    if (await db.execute(written.returning(profiles.c.id))).one_or_none() is None:
        raise NotFound("There is no such profile.")


async def remove(tenant: TenantId, db: Db, profile: ProfileId) -> bool:
    """Delete a profile; True if it existed."""
    deleted = delete(profiles).where(profiles.c.tenant_id == tenant, profiles.c.id == profile).returning(profiles.c.id)
    return (await db.execute(deleted)).one_or_none() is not None


def _row_values(profile: Profile) -> dict[str, object]:
    return {
        "name": profile.name,
        "description": profile.description,
        "rules": msgspec.json.encode(
            _Rules(
                include=profile.include,
                exclude=profile.exclude,
                structured_once=profile.structured_once,
                selects_fields=profile.selects_fields,
                summary_threshold=profile.summary_threshold,
            )
        ),
        "updated_at": func.now(),
    }


def _profile(row: RowMapping) -> Profile:
    rules = _decode(row["rules"])
    return Profile(
        id=ProfileId(row["id"]),
        name=row["name"],
        description=row["description"],
        include=rules.include,
        exclude=rules.exclude,
        structured_once=rules.structured_once,
        selects_fields=rules.selects_fields,
        summary_threshold=rules.summary_threshold,
        version=row["version"],
    )
