"""Credentials of a tenant's sources: stored sealed, opened for requests, never returned by the API."""

from collections.abc import Mapping

import msgspec
from sqlalchemy import delete, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId, mint, new_secret_id
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.tables import data_keys, secrets


async def save(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, *, source: SourceId, scheme: str, credential: Credential
) -> None:
    """Store the credential of one security scheme of a source, in place of an earlier credential.

    Raises:
        NotFound: the tenant has no such source.
    """
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    is_it = (secrets.c.tenant_id == tenant, secrets.c.source_id == source, secrets.c.scheme == scheme)
    found = (await db.execute(select(secrets.c.version).where(*is_it).with_for_update())).scalar_one_or_none()
    version = int(found or 0) + 1
    value = msgspec.json.encode({"value": credential.value, "username": credential.username})
    sealed = sealer.seal(tenant, wrapped, value, source, scheme, str(version), *_reference(credential.reference))
    facts = {"version": version, "data_key_id": key_id, "sealed": sealed, "credential": credential.reference}
    if found is None:
        key = {"tenant_id": tenant, "id": new_secret_id(), "source_id": source, "scheme": scheme}
        await db.execute(insert_into(secrets).values(**key, **facts))
    else:
        await db.execute(update(secrets).where(*is_it).values(**facts))


async def load(tenant: TenantId, db: Db, sealer: EnvelopeCipher, source: SourceId) -> Mapping[str, Credential]:
    """The credentials of a source by security scheme.

    Raises:
        SecretUnreadable: a credential was changed, or no configured key opens it.
    """
    wanted = select(secrets.c.scheme, secrets.c.version, secrets.c.sealed, secrets.c.credential, data_keys.c.wrapped)
    joined = (data_keys.c.tenant_id == secrets.c.tenant_id) & (data_keys.c.id == secrets.c.data_key_id)
    is_of_source = (secrets.c.tenant_id == tenant, secrets.c.source_id == source)
    rows = await db.execute(wanted.join_from(secrets, data_keys, joined).where(*is_of_source))
    found: dict[str, Credential] = {}
    for row in rows.mappings():
        context = (source, row["scheme"], str(row["version"]), *_reference(row["credential"]))
        plain = sealer.open(tenant, row["wrapped"], row["sealed"], *context)
        found[row["scheme"]] = _credential(plain, row["credential"])
    return found


async def remove_all(tenant: TenantId, db: Db, source: SourceId) -> int:
    """Delete all credentials of a source; return their number."""
    gone = delete(secrets).where(secrets.c.tenant_id == tenant, secrets.c.source_id == source)
    return len((await db.execute(gone.returning(secrets.c.id))).all())


async def rewrap(tenant: TenantId, db: Db, sealer: EnvelopeCipher) -> int:
    """Wrap the tenant's data keys with the first secret key, so that older secret keys can be removed.

    Returns the number of data keys wrapped again. A data key of an unknown secret key is lost and stays unchanged.

    Raises:
        SecretUnreadable: a data key was changed.
    """
    rows = await db.execute(
        select(data_keys.c.id, data_keys.c.wrapped).where(data_keys.c.tenant_id == tenant).with_for_update()
    )
    found = [(row["id"], row["wrapped"]) for row in rows.mappings()]
    stale = [(key, wrapped) for key, wrapped in found if sealer.can_open(wrapped) and not sealer.is_current(wrapped)]
    for key, wrapped in stale:
        is_it = (data_keys.c.tenant_id == tenant, data_keys.c.id == key)
        await db.execute(update(data_keys).where(*is_it).values(wrapped=sealer.rewrap(tenant, wrapped)))
    return len(stale)


async def tenant_key(tenant: TenantId, db: Db, sealer: EnvelopeCipher) -> tuple[str, bytes]:
    """The id of a data key of the tenant, and the wrapped key.

    It is the newest key that a configured secret key wrapped, or else a new one. So a lost secret key does not lock the
    tenant out.
    """
    rows = await db.execute(
        select(data_keys.c.id, data_keys.c.wrapped)
        .where(data_keys.c.tenant_id == tenant)
        .order_by(data_keys.c.created_at.desc(), data_keys.c.id)
    )
    for row in rows.mappings():
        if sealer.can_open(row["wrapped"]):
            return row["id"], row["wrapped"]
    key, wrapped = mint("dek"), sealer.new_tenant_key(tenant)
    await db.execute(insert_into(data_keys).values(tenant_id=tenant, id=key, wrapped=wrapped))
    return key, wrapped


class _OpenSecret(msgspec.Struct):
    value: str
    username: str | None = None


def _credential(plain: bytes, reference: str | None) -> Credential:
    read = msgspec.json.decode(plain, type=_OpenSecret)
    return Credential(value=read.value, username=read.username, reference=reference)


def _reference(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)
