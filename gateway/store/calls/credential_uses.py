"""The identity of the stored credentials that a call uses; a replaced credential has another identity."""

import hashlib
from dataclasses import dataclass

import msgspec
from sqlalchemy import text

from gateway.domain.identifiers import TenantId
from gateway.store.engine import Db


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialUse:
    """The object that names the credentials of a call: a source, a primitive or a live source."""

    source: str = ""
    primitive: str = ""
    live_source: str = ""


_CREDENTIALS = text("""
    with used as (
        select cast(:source as text) as id
        union all
        select o.id from primitives p join sources o on o.tenant_id = p.tenant_id
            and exists (select from unnest(p.refers) r where starts_with(r, 'operation:' || o.name || ':'))
        where p.tenant_id = :tenant and p.id = :primitive
    )
    select 'secret', s.id, s.version from secrets s join used u on u.id = s.source_id where s.tenant_id = :tenant
    union all
    select 'credential', c.id, c.version from secrets s join used u on u.id = s.source_id
    join credentials c on c.tenant_id = s.tenant_id and c.name = s.credential
    where s.tenant_id = :tenant
    union all
    select 'credential', c.id, c.version
    from primitives p
    join credentials c on c.tenant_id = p.tenant_id and 'credential:' || c.name = any (p.refers)
    where p.tenant_id = :tenant and p.id = :primitive
    union all
    select 'live', l.id, l.version from live_sources l where l.tenant_id = :tenant and l.name = :live_source
    union all
    select 'credential', c.id, c.version from live_sources l join credentials c
        on c.tenant_id = l.tenant_id and c.name in (l.credential, l.caller_credential)
    where l.tenant_id = :tenant and l.name = :live_source
    order by 1, 2
""")


async def credential_identity(tenant: TenantId, db: Db, use: CredentialUse) -> bytes:
    """Digest of the ids and versions of the stored credentials that a call uses; no secret is read."""
    values = {"source": use.source, "primitive": use.primitive, "live_source": use.live_source}
    rows = await db.execute(_CREDENTIALS, {"tenant": tenant, **values})
    found = [tuple(row) for row in rows]
    return hashlib.blake2b(msgspec.msgpack.encode(found), digest_size=16).digest()
