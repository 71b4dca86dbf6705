"""Profiles of a tenant: named selections of its primitives, each with its own URL."""

from collections.abc import Sequence

from gateway.catalog.kinds.engines.collection import Collection
from gateway.catalog.snapshots.token_costs import price_profiles
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.profiles import Profile
from gateway.kinds.selections import PROFILE
from gateway.store.engine import Db
from gateway.store.identity import keys
from gateway.store.kinds import profiles


async def _bound_keys(tenant: TenantId, db: Db, profile: Profile) -> Sequence[tuple[str, str]]:
    return [("key", key) for key in await keys.bound_to(tenant, db, profile.name)]


PROFILES = Collection(kind=PROFILE, rows=profiles.PROFILES, in_use=_bound_keys, compute=price_profiles)
