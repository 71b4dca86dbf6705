"""Profiles of a tenant: named selections of its primitives, each with its own URL."""

from collections.abc import Callable, Sequence

from gateway.catalog.credentials import refuse_in_use
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.identifiers import ProfileId, TenantId
from gateway.domain.order import KEYED, Order, follows
from gateway.domain.tenancy.profiles import DEFAULT_PROFILE, Profile
from gateway.errors import Conflict, LimitExceeded, NameConflict, NameTaken, NotFound
from gateway.store import profiles
from gateway.store.engine import Db
from gateway.store.identity import keys

MAX_PROFILES = 200
"""Limit on the profiles of one tenant."""
DEFAULT = Profile(id=ProfileId(DEFAULT_PROFILE), name=DEFAULT_PROFILE, description="All primitives of the tenant.")
"""The profile that every tenant has; it is not stored."""
_RESERVED = {DEFAULT_PROFILE: "builtin", "hooks": "reserved for the path of webhooks"}


async def create_profile(tenant: TenantId, catalog: CatalogContext, profile: Profile, *, by: Author) -> Profile:
    """Create a profile.

    Raises:
        NameTaken: the tenant has a profile of this name, or the name is reserved in URLs.
        LimitExceeded: the tenant has reached its limit of profiles.
    """
    entry = CatalogChange(action="profile.create", target=profile.name, detail={"id": profile.id}, after=profile)
    async with change(tenant, catalog, entry, by=by) as db:
        await _refuse_taken(tenant, db, profile.name)
        if await profiles.count(tenant, db) >= MAX_PROFILES:
            raise LimitExceeded(f"the tenant has {MAX_PROFILES} profiles (the limit); delete unused ones")
        await profiles.insert(tenant, db, profile)
    return profile


async def get_profile(tenant: TenantId, catalog: CatalogContext, name: str) -> Profile:
    """The profile of this name or id.

    Raises:
        NotFound: the tenant has no such profile.
    """
    if name == DEFAULT_PROFILE:
        return DEFAULT
    async with catalog.store.transaction(tenant) as db:
        return await find_profile(tenant, db, name)


async def page_profiles(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[Profile]:
    """One page of the tenant's profiles, sorted by name; `default` is included."""
    async with catalog.store.transaction(tenant) as db:
        found = list(await profiles.page(tenant, db, after=after, limit=limit, order=order))
    if follows((DEFAULT.name,), after, order):
        found.append(DEFAULT)
    return sorted(found, key=lambda profile: profile.name, reverse=order.is_descending)[:limit]


async def update_profile(
    tenant: TenantId,
    catalog: CatalogContext,
    name: str,
    revise: Callable[[Profile], Profile],
    *,
    by: Author,
    expected: Expected = None,
) -> Profile:
    """Replace a profile with the one that `revise` returns, which must have the same name.

    Raises:
        NotFound: the tenant has no such profile.
        Conflict: `default` cannot be changed.
        PreconditionFailed: the current version matches no expected tag.
    """
    _refuse_default(name)
    entry = CatalogChange(action="profile.update", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_profile(tenant, db, name)
        check_version(current, expected)
        revised = revise(current)
        entry.target, entry.detail = current.name, {"id": current.id}
        entry.before, entry.after = current, revised
        await profiles.save(tenant, db, revised)
        return await find_profile(tenant, db, current.id)


async def remove_profile(
    tenant: TenantId, catalog: CatalogContext, name: str, *, by: Author, expected: Expected = None
) -> None:
    """Remove the profile.

    Raises:
        NotFound: the tenant has no such profile.
        Conflict: the profile is `default`, or unrevoked keys are bound to it; the faults name the first 20 keys.
        PreconditionFailed: the current version matches no expected tag.
    """
    _refuse_default(name)
    entry = CatalogChange(action="profile.delete", target=name)
    async with change(tenant, catalog, entry, by=by) as db:
        current = await find_profile(tenant, db, name)
        check_version(current, expected)
        entry.target, entry.detail, entry.before = current.name, {"id": current.id}, current
        bound = await keys.bound_to(tenant, db, current.name)
        refuse_in_use("profile", current.name, [("key", key) for key in bound])
        await profiles.remove(tenant, db, current.id)


async def exists(tenant: TenantId, db: Db, name: str) -> bool:
    """True if the tenant has a profile of this name."""
    if name == DEFAULT_PROFILE:
        return True
    found = await profiles.get(tenant, db, name)
    return found is not None and found.name == name


async def find_profile(tenant: TenantId, db: Db, name: str) -> Profile:
    """The stored profile of this name or id, read in the caller's transaction; `default` is not stored.

    Raises:
        NotFound: the tenant has no such profile.
    """
    found = await profiles.get(tenant, db, name)
    if found is None:
        raise NotFound("no such profile")
    return found


async def _refuse_taken(tenant: TenantId, db: Db, name: str) -> None:
    owner = _RESERVED.get(name)
    if owner is None and await profiles.get(tenant, db, name) is not None:
        owner = f"profile:{name}"
    if owner is not None:
        conflict = NameConflict(name=name, owner=owner)
        raise NameTaken(f"the profile name {name} is taken", conflicts=[conflict])


def _refuse_default(name: str) -> None:
    if name == DEFAULT_PROFILE:
        raise Conflict("the profile default contains all primitives and cannot be changed; create another profile")
