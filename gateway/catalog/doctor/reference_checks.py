"""Doctor check of credentials that refer to external secret stores: each secret is read as in a call."""

from gateway.catalog.snapshots.credential_cache import read_external_secret
from gateway.domain.findings import Finding, fine, list_names, warning
from gateway.errors import GatewayError
from gateway.store import credentials, tenants
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Store
from gateway.upstream.secret_stores.stores import SecretStores

_CHECK = "secret_references"
_MAX_TENANTS = 100
_MAX_REFERENCES = 50


async def check_references(store: Store, cipher: EnvelopeCipher, stores: SecretStores) -> Finding:
    """Finding on the references of the first 100 tenants, at most 50 of them; it contains no secret."""
    read, faults = 0, list[str]()
    async with store.unscoped() as db:
        found = await tenants.page(db, after=None, limit=_MAX_TENANTS)
    async with stores.opened():
        for tenant in found:
            async with store.transaction(tenant.id) as db:
                names = await credentials.names_with_reference(tenant.id, db, limit=_MAX_REFERENCES - read)
            for name in names:
                read += 1
                try:
                    async with store.transaction(tenant.id) as db:
                        opened = await credentials.open_named(tenant.id, db, cipher, name)
                    await read_external_secret(store, stores, tenant.id, opened)
                except GatewayError as error:
                    faults.append(f"{tenant.slug}: {name}: {error.message}")
    if faults:
        remedy = "create the secret at the referenced location; `gateway credential test NAME` shows the reason"
        return warning(_CHECK, f"secrets in external stores cannot be read: {list_names(faults, limit=5)}", remedy)
    return fine(_CHECK, f"{read} secrets in external stores were read")
