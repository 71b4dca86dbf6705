"""Credentials of a tenant's sources: stored encrypted, decrypted for requests, never returned by the API."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import RowMapping, Table, delete, exists, not_, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import SourceId, TenantId, mint, new_secret_id
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.tables import data_keys, secrets


class TenantKey(NamedTuple):
    """A data key of a tenant: its id, and the key wrapped by a secret key."""

    id: str
    wrapped: bytes


async def save(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, *, source: SourceId, scheme: str, credential: Credential
) -> None:
    """Store the credential of one security scheme of a source; it replaces an earlier credential.

    Raises:
        NotFound: the tenant has no such source.
    """
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    matches = (secrets.c.tenant_id == tenant, secrets.c.source_id == source, secrets.c.scheme == scheme)
    found = (await db.execute(select(secrets.c.version).where(*matches).with_for_update())).scalar_one_or_none()
    version = int(found or 0) + 1
    plain = _PlainSecret(value=credential.value, username=credential.username, parameters=credential.parameters)
    value = msgspec.json.encode(plain)
    sealed = sealer.seal(tenant, wrapped, value, source, scheme, str(version), *_reference(credential.reference))
    columns = {"version": version, "data_key_id": key_id, "sealed": sealed, "credential": credential.reference}
    if found is None:
        key = {"tenant_id": tenant, "id": new_secret_id(), "source_id": source, "scheme": scheme}
        await db.execute(insert_into(secrets).values(**key, **columns))
    else:
        await db.execute(update(secrets).where(*matches).values(**columns))


async def references(tenant: TenantId, db: Db, source: SourceId) -> Mapping[str, str | None]:
    """The name of the tenant's credential for each scheme of a source; None for a secret of its own."""
    is_of_source = (secrets.c.tenant_id == tenant, secrets.c.source_id == source)
    rows = await db.execute(select(secrets.c.scheme, secrets.c.credential).where(*is_of_source))
    return {row.scheme: row.credential for row in rows}


async def load(tenant: TenantId, db: Db, sealer: EnvelopeCipher, source: SourceId) -> Mapping[str, Credential]:
    """The credentials of a source by security scheme.

    Raises:
        SecretUnreadable: a credential was changed, or no configured key decrypts it.
    """
    query = select(*secrets.c, data_keys.c.wrapped)
    joined = (data_keys.c.tenant_id == secrets.c.tenant_id) & (data_keys.c.id == secrets.c.data_key_id)
    is_of_source = (secrets.c.tenant_id == tenant, secrets.c.source_id == source)
    rows = await db.execute(query.join_from(secrets, data_keys, joined).where(*is_of_source))
    found: dict[str, Credential] = {}
    for row in rows.mappings():
        plain = sealer.open(tenant, row["wrapped"], row["sealed"], *sealed_context(row, "sealed"))
        found[row["scheme"]] = _credential(plain, row["credential"])
    return found


async def remove_all(tenant: TenantId, db: Db, source: SourceId) -> int:
    """Delete all credentials of a source; return their number."""
    deleted = delete(secrets).where(secrets.c.tenant_id == tenant, secrets.c.source_id == source)
    return len((await db.execute(deleted.returning(secrets.c.id))).all())


async def tenant_key(tenant: TenantId, db: Db, sealer: EnvelopeCipher) -> TenantKey:
    """A data key of the tenant, for values that are encrypted in this transaction.

    It is the newest data key that a configured secret key can unwrap. Without one, a new data key is created, so a lost
    secret key does not prevent the storage of new values. The data key cannot be deleted until the transaction ends.
    """
    for key in await _tenant_keys(tenant, db, is_shared=True):
        if sealer.can_open(key.wrapped):
            return key
    return await _new_key(tenant, db, sealer)


async def current_key(tenant: TenantId, db: Db, sealer: EnvelopeCipher) -> TenantKey | None:
    """The target of a re-encryption: the newest data key wrapped by the first secret key, or else a new data key.

    None if the first secret key wrapped all data keys that can be unwrapped.
    """
    found = [key for key in await _tenant_keys(tenant, db, is_shared=True) if sealer.can_open(key.wrapped)]
    if all(sealer.is_current(key.wrapped) for key in found):
        return None
    current = next((key for key in found if sealer.is_current(key.wrapped)), None)
    return current or await _new_key(tenant, db, sealer)


async def remove_unused_keys(tenant: TenantId, db: Db, sealer: EnvelopeCipher, used: Sequence[Table]) -> int:
    """Delete unused data keys under older secret keys; return the number that is left.

    A data key is used if a value in these tables needs it, or a transaction has locked it for a new value.
    """
    stale = [key.id for key in await _tenant_keys(tenant, db) if _is_stale(sealer, key)]
    if not stale:
        return 0
    matches = (data_keys.c.tenant_id == tenant, data_keys.c.id.in_(stale))
    unheld = select(data_keys.c.id).where(*matches).with_for_update(skip_locked=True)  # guard: data-key-in-use
    free = (await db.execute(unheld)).scalars().all()
    of_values = [exists().where(table.c.tenant_id == tenant, table.c.data_key_id == data_keys.c.id) for table in used]
    unused = delete(data_keys).where(data_keys.c.tenant_id == tenant, data_keys.c.id.in_(free), not_(or_(*of_values)))
    deleted = (await db.execute(unused.returning(data_keys.c.id))).all()
    return len(stale) - len(deleted)


def sealed_context(row: RowMapping, _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return (row["source_id"], row["scheme"], str(row["version"]), *_reference(row["credential"]))


async def _tenant_keys(tenant: TenantId, db: Db, *, is_shared: bool = False) -> Sequence[TenantKey]:
    """The data keys of the tenant, the newest first; shared keys cannot be deleted until the transaction ends."""
    query = select(data_keys.c.id, data_keys.c.wrapped).where(data_keys.c.tenant_id == tenant)
    query = query.order_by(data_keys.c.created_at.desc(), data_keys.c.id)
    rows = await db.execute(query.with_for_update(read=True, key_share=True) if is_shared else query)
    return [TenantKey(row[0], row[1]) for row in rows]


async def _new_key(tenant: TenantId, db: Db, sealer: EnvelopeCipher) -> TenantKey:
    key = TenantKey(mint("dek"), sealer.new_tenant_key(tenant))
    await db.execute(insert_into(data_keys).values(tenant_id=tenant, id=key.id, wrapped=key.wrapped))
    return key


def _is_stale(sealer: EnvelopeCipher, key: TenantKey) -> bool:
    return sealer.can_open(key.wrapped) and not sealer.is_current(key.wrapped)


class _PlainSecret(msgspec.Struct):
    value: str
    username: str | None = None
    parameters: tuple[tuple[str, str], ...] = ()


def _credential(plain: bytes, reference: str | None) -> Credential:
    read = msgspec.json.decode(plain, type=_PlainSecret)
    return Credential(value=read.value, username=read.username, reference=reference, parameters=read.parameters)


def _reference(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)
