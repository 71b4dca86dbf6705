"""Lookup of names that are in use in any tenant, for the registration of Python primitives.

The SQL function bypasses row-level security to list the tenants, but not to read each tenant's names.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import ARRAY, Text, bindparam, func, select

from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family, OwnedName
from gateway.store.engine import Db

_ARRAYS = [bindparam(name, type_=ARRAY(Text)) for name in ("slugs", "kinds", "names")]
_FOUND = func.owners_of_names(*_ARRAYS).table_valued("tenant_id", "slug", "kind", "name", "owner")
_OWNERS = select(*_FOUND.c).order_by(_FOUND.c.slug, _FOUND.c.kind, _FOUND.c.name)


async def find_owners(
    db: Db, places: Collection[tuple[Family, str]], slugs: Collection[str] | None
) -> Sequence[OwnedName]:
    """The names among `places` that tenants with these slugs use, sorted by slug; `slugs=None` means all tenants.

    Needs an unscoped transaction.
    """
    given = {
        "slugs": None if slugs is None else list(slugs),
        "kinds": [family.value for family, _ in places],
        "names": [name for _, name in places],
    }
    rows = (await db.execute(_OWNERS, given)).mappings()
    return [
        OwnedName(
            tenant=TenantId(row["tenant_id"]),
            slug=row["slug"],
            family=Family(row["kind"]),
            name=row["name"],
            owner=row["owner"],
        )
        for row in rows
    ]
