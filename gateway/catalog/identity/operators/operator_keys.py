"""Keys of operators: the rights are an object of the installation, the secret is a key of the installation's tenant.

So that authentication, digests, expiry, last use and revocation are those of all keys. Only an administrator without
limits creates, changes, rotates and deletes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.catalog.identity.operators.operator_rights import check_rights, resolve_tenants, slugs_of
from gateway.catalog.kinds.engines.minting_collection import MintingCollection
from gateway.catalog.kinds.keys import digested
from gateway.catalog.transaction import CatalogContext, OpenChanges
from gateway.domain.events import KeyChanged
from gateway.domain.identifiers import INSTALLATION, TenantId
from gateway.domain.tenancy.keys import Key, KeyState, mint_key
from gateway.domain.tenancy.operators import OperatorKey, OperatorKeyStatus
from gateway.errors import Fault, InvalidBody, NotFound
from gateway.kinds.operators import OPERATOR_KEY
from gateway.store.identity import keys
from gateway.store.kinds.keys import KEYS
from gateway.store.kinds.rows import rows_of


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorKeyCollection(MintingCollection[OperatorKey]):
    """The operator keys, each with the stored key that has the digest of its secret."""

    async def insert(self, opened: OpenChanges, new: OperatorKey) -> None:
        """Store a new object with its key."""
        minted = mint_key("operator", key=new.key)
        secret = replace(digested(opened.catalog, minted), made_by=(opened.by.caller.name,))
        key = Key(
            tenant=INSTALLATION,
            id=minted.id,
            name=new.name,
            scopes=frozenset(),  # the rights are in the object, and an earlier release permits nothing
            subject=minted.id,
            profile=None,
            secret=secret,
            created_at=new.created_at,
            expires_at=new.ends_at,
            revoked_at=None,
            version=1,
        )
        await KEYS.insert(INSTALLATION, opened.db, key)
        await self.rows.insert(opened.tenant, opened.db, new)
        opened.generated[new.id] = minted.text

    async def save(self, opened: OpenChanges, current: OperatorKey, revised: OperatorKey) -> None:
        """Store a changed object, and the expiry of its key."""
        stored = await self._key_of(opened, current)
        await KEYS.save(opened.tenant, opened.db, replace(stored, expires_at=revised.ends_at))
        await self.rows.save(opened.tenant, opened.db, revised)

    async def renew(self, opened: OpenChanges, current: OperatorKey) -> tuple[OperatorKey, str]:
        """Store another secret; the previous one is refused at once."""
        stored, minted = await self._key_of(opened, current), mint_key("operator", key=current.key)
        secret = digested(opened.catalog, minted, after=stored)
        secret = replace(secret, made_by=(opened.by.caller.name,))
        await KEYS.save(opened.tenant, opened.db, replace(stored, secret=secret, former=None))
        await self.rows.save(opened.tenant, opened.db, current)
        _announce(opened, current)
        return await self.find(opened.tenant, opened.db, current.id), minted.text

    async def _key_of(self, opened: OpenChanges, one: OperatorKey) -> Key:
        found = await keys.get(opened.tenant, opened.db, one.key)
        if found is None:
            raise NotFound("no such operator key")
        return found


async def _complete(opened: OpenChanges, current: OperatorKey | None, wanted: OperatorKey) -> OperatorKey:
    """Return the key with the ids of the tenants to which it is limited."""
    del current
    return replace(wanted, tenants=await resolve_tenants(opened.db, wanted.tenants))


async def _check(opened: OpenChanges, current: OperatorKey | None, wanted: OperatorKey) -> None:
    del opened
    check_rights(wanted.rights)
    is_new = current is None or current.expires_at != wanted.expires_at
    if is_new and wanted.ends_at is not None and wanted.ends_at <= datetime.now(UTC):
        fault = Fault(pointer="/expires_at", reason="must be in the future")
        raise InvalidBody(f"expires_at: {fault.reason}", faults=[fault])


async def _written(
    opened: OpenChanges, before: OperatorKey | None, after: OperatorKey | None
) -> Mapping[str, object] | None:
    """Remove the stored key of a deleted object, and drop its cached authentications on all replicas."""
    if before is not None:
        if after is None:
            await KEYS.remove(opened.tenant, opened.db, before.key)  # guard: operator-key-revoked
        _announce(opened, before, is_ended=after is None)
    return None


def _announce(opened: OpenChanges, one: OperatorKey, *, is_ended: bool = False) -> None:
    opened.announce(KeyChanged(tenant=opened.tenant, key=one.key, is_ended=is_ended))


async def _status(
    tenant: TenantId, catalog: CatalogContext, found: Sequence[OperatorKey]
) -> Sequence[OperatorKeyStatus]:
    async with catalog.store.transaction(tenant) as db:
        slugs = await slugs_of(db, [each.tenants for each in found])
        stored = {one.id: one for one in await keys.of_ids(tenant, db, [each.key for each in found])}
    return [
        OperatorKeyStatus(
            state=stored[each.key].state if each.key in stored else KeyState.REVOKED,
            tenants=limit,
            last_used_at=stored[each.key].last_used_at if each.key in stored else None,
        )
        for each, limit in zip(found, slugs, strict=True)
    ]


OPERATOR_KEYS = OperatorKeyCollection(
    kind=OPERATOR_KEY,
    rows=rows_of(OPERATOR_KEY),
    complete=_complete,
    check=_check,
    written=_written,
    compute=_status,
)
