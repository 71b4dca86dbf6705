"""Stored public keys of exports: cut records and earlier exports stay verifiable after a secret key is removed."""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import TenantId
from gateway.store.audit.export_lines import ExportKey, VerifyKey
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.secret_keys.tables import audit_export_keys as export_keys


async def keep(tenant: TenantId, db: Db, cipher: EnvelopeCipher) -> None:
    """Store the tenant's public keys that are derived from older secret keys."""
    for key in ExportKey.of(tenant, cipher)[1:]:
        query = insert_into(export_keys).values(tenant_id=tenant, id=key.id, public=key.public)
        await db.execute(query.on_conflict_do_nothing())


async def verify_keys(tenant: TenantId, db: Db, cipher: EnvelopeCipher) -> Sequence[VerifyKey]:
    """The tenant's public keys: first those of configured secret keys, then the stored ones of removed secret keys."""
    own = [VerifyKey(key.public) for key in ExportKey.of(tenant, cipher)]
    query = select(export_keys.c.public).where(export_keys.c.tenant_id == tenant).order_by(export_keys.c.id)
    kept = [VerifyKey(public) for public in (await db.execute(query)).scalars()]
    return [*own, *(key for key in kept if key not in own)]
