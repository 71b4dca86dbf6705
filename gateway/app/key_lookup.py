"""Database lookups of the authentication, which run before the tenant is known: API keys, issuers and people."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from gateway.catalog.identity.access_rules import find_rights
from gateway.catalog.identity.operators.operator_grants import OPERATOR_GRANTS
from gateway.catalog.identity.operators.operator_keys import OPERATOR_KEYS
from gateway.catalog.identity.people import store_person
from gateway.domain.identifiers import INSTALLATION, KeyId, TenantId, is_grant_id
from gateway.domain.tenancy.access import Rights
from gateway.domain.tenancy.issuers import TenantIssuers
from gateway.domain.tenancy.keys import Key, KeyUse
from gateway.domain.tenancy.principals import Principal
from gateway.identity.operators import OperatorRecords
from gateway.kinds.identity import MAX_ISSUERS
from gateway.store.database.limits import PROMPT_S
from gateway.store.engine import Store
from gateway.store.identity import grants, issuers, keys
from gateway.store.kinds.singletons import ACCESS


class KeyLookup:
    """Finds API keys of all tenants by id in PostgreSQL."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, wanted: Collection[KeyId], *, hurried: bool = False) -> Mapping[KeyId, tuple[Key, str]]:
        """Return the existing keys and grants with these ids, each with the slug of its tenant."""
        grant_ids = [one for one in wanted if is_grant_id(one)]
        async with self._store.lookup(within_s=PROMPT_S if hurried else None) as db:
            if not grant_ids:
                return await keys.find(db, wanted)
            return {**await keys.find(db, set(wanted) - set(grant_ids)), **await grants.find(db, grant_ids)}

    async def note_uses(self, tenant: TenantId, uses: Sequence[KeyUse]) -> None:
        """Store the uses of a tenant's keys, and new digests of their texts under the current secret key."""
        async with self._store.upkeep(tenant) as db:
            for hour in {use.hour for use in uses}:
                await keys.note_use(tenant, db, hour, [use.key for use in uses if use.hour == hour])
            for use in uses:
                if use.renewed is not None:
                    await keys.renew_secret(tenant, db, use.key, use.secret, after=use.renewed)

    async def find_issuers(self, slugs: Collection[str]) -> Mapping[str, TenantIssuers]:
        """Return the enabled issuers of the tenants with these slugs, with the scopes that access rules name."""
        async with self._store.lookup() as db:
            found = await issuers.find(db, slugs)
        return {slug: await self._with_access_scopes(each) for slug, each in found.items()}

    async def _with_access_scopes(self, found: TenantIssuers) -> TenantIssuers:
        async with self._store.transaction(found.tenant) as db:
            access = await ACCESS.get(found.tenant, db)
        named = [replace(issuer, access_scopes=access.scopes_of_issuer(issuer.name)) for issuer in found.issuers]
        return replace(found, issuers=tuple(named))

    async def find_operators(self) -> OperatorRecords:
        """Return the rights of all operators."""
        async with self._store.transaction(INSTALLATION, within_s=PROMPT_S) as db:
            named = await OPERATOR_KEYS.rows.load(INSTALLATION, db)
            grants = await OPERATOR_GRANTS.rows.load(INSTALLATION, db)
            found = await issuers.page(INSTALLATION, db, after=None, limit=MAX_ISSUERS)
        enabled = frozenset(one.name for one in found if one.enabled)
        return OperatorRecords(keys={one.key: one.rights for one in named}, grants=grants, issuers=enabled)

    async def enter(self, person: Key) -> Key:
        """Return the stored person; a new person is stored first.

        Raises:
            LimitExceeded: the tenant has too many people.
        """
        return await store_person(self._store, person)

    async def find_rights(self, principal: Principal) -> Rights:
        """Return the rights of a person under the stored access rules."""
        return await find_rights(principal.tenant, self._store, principal)
