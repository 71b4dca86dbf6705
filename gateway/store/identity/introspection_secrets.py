"""Encrypted client secrets of the gateway for introspection endpoints, one per issuer.

A secret is bound to its client id and endpoint. If the issuer's row is changed, the secret can no longer be decrypted,
so it is not sent to another endpoint.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.tenancy.issuers import Issuer
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.identity.issuers import bound_id
from gateway.store.identity.tables import introspection_secrets
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

_columns = introspection_secrets.c


async def save(tenant: TenantId, db: Db, sealer: EnvelopeCipher, issuer: Issuer, *, secret: str) -> None:
    """Encrypt and store the secret of the issuer's introspection client; it replaces an earlier one."""
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    sealed = sealer.seal(tenant, wrapped, secret.encode(), *_bound(issuer.id, *_client(issuer)))
    client_id, url = _client(issuer)
    members = {"client_id": client_id, "url": url, "data_key_id": key_id, "sealed": sealed}
    added = insert_into(introspection_secrets).values(tenant_id=tenant, id=issuer.id, **members)
    await db.execute(added.on_conflict_do_update(index_elements=("tenant_id", "id"), set_=members))


async def open_one(tenant: TenantId, db: Db, sealer: EnvelopeCipher, issuer: Issuer) -> str | None:
    """The secret of the issuer's introspection client; None if there is none.

    Raises:
        SecretUnreadable: it was encrypted for another client or endpoint, or no configured key decrypts it.
    """
    joined = (data_keys.c.tenant_id == _columns.tenant_id) & (data_keys.c.id == _columns.data_key_id)
    query = select(_columns.sealed, data_keys.c.wrapped).join_from(introspection_secrets, data_keys, joined)
    row = (await db.execute(query.where(_columns.tenant_id == tenant, _columns.id == issuer.id))).one_or_none()
    return None if row is None else sealer.open(tenant, row[1], row[0], *_bound(issuer.id, *_client(issuer))).decode()


async def remove(tenant: TenantId, db: Db, issuer: IssuerId) -> bool:
    """Delete the secret of an issuer; True if there was one."""
    gone = delete(introspection_secrets).where(_columns.tenant_id == tenant, _columns.id == issuer)
    return (await db.execute(gone.returning(_columns.id))).one_or_none() is not None


def sealed_context(row: Mapping[Any, Any], _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _bound(row["id"], row["client_id"], row["url"])


def _client(issuer: Issuer) -> tuple[str, str]:
    client = issuer.introspection
    return ("", "") if client is None else (bound_id(client), client.url)


def _bound(issuer: str, client_id: str, url: str) -> tuple[str, ...]:
    return ("introspection client", issuer, client_id, url)  # guard: introspection-secret-sealed
