"""Doctor check of references to external secret stores, of credentials and issuers: each secret is read."""

from collections.abc import Awaitable, Callable
from functools import partial

from gateway.catalog.doctor.limits import MAX_REFERENCES, MAX_REFERENCING_ISSUERS, MAX_TENANTS
from gateway.catalog.snapshots.credential_cache import read_external_secret, read_reference
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.domain.identifiers import TenantId
from gateway.errors import GatewayError
from gateway.store import tenants
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.store.identity import issuers
from gateway.store.kinds.credentials import CREDENTIALS, open_named
from gateway.upstream.secret_stores.stores import SecretStores

_CHECK = "secret_references"

_Read = Callable[[], Awaitable[object]]


async def check_references(store: Store, cipher: EnvelopeCipher, stores: SecretStores) -> Finding:
    """Finding on the references of the first 100 tenants, at most 50 of them; it contains no secret."""
    read, faults = 0, list[str]()
    async with store.unscoped() as db:
        found = await tenants.page(db, after=None, limit=MAX_TENANTS)
    async with stores.opened():
        for tenant in found:
            for name, read_secret in await _references(tenant.id, store, cipher, stores, limit=MAX_REFERENCES - read):
                read += 1
                try:
                    await read_secret()
                except GatewayError as error:
                    faults.append(f"{tenant.slug}: {name}: {error.message}")
    if faults:
        remedy = "create the secret at the referenced location; `gateway credential test NAME` shows the reason"
        return warning(_CHECK, f"secrets in external stores cannot be read: {list_names(faults, limit=5)}", remedy)
    return fine(_CHECK, f"{read} secrets in external stores were read")


async def _references(
    tenant: TenantId, store: Store, cipher: EnvelopeCipher, stores: SecretStores, *, limit: int
) -> list[tuple[str, _Read]]:
    """The names of a tenant's references, and the reads of their secrets."""
    async with store.transaction(tenant) as db:
        stored = await CREDENTIALS.load(tenant, db)
        known = await issuers.page(tenant, db, after=None, limit=MAX_REFERENCING_ISSUERS)
    names = [one.name for one in stored if one.reference is not None]
    reads: list[tuple[str, _Read]] = [
        (name, partial(_read, tenant, store, cipher, stores, name=name)) for name in names
    ]
    for issuer in known:
        for member, client in (("sign_in", issuer.sign_in), ("introspection", issuer.introspection)):
            if client is not None and (reference := client.client_secret_reference) is not None:
                name = f"{member} of the issuer {issuer.name}"
                reads.append((name, partial(read_reference, store, stores, tenant, reference)))
    return reads[:limit]


async def _read(tenant: TenantId, store: Store, cipher: EnvelopeCipher, stores: SecretStores, *, name: str) -> None:
    async with store.transaction(tenant) as db:
        opened = await open_named(tenant, db, cipher, name)
    await read_external_secret(store, stores, tenant, opened)
