"""A tenant's outbound webhook endpoints, with their encrypted signing secrets."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import RowMapping, Select, and_, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId, WebhookEndpointId
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.webhook_endpoints import OutboundWebhook
from gateway.domain.updates.webhooks import SigningSecrets
from gateway.errors import NotFound
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.notifications.tables import webhook_endpoints as endpoints
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

_PUBLIC_COLUMNS = tuple(endpoints.c[name] for name in OutboundWebhook.__slots__)
_decode = msgspec.json.Decoder(SigningSecrets).decode


async def insert(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, endpoint: OutboundWebhook, signing: SigningSecrets
) -> None:
    """Add an endpoint.

    Raises:
        NameTaken: the tenant already has an endpoint with this name.
        NotFound: there is no such tenant.
    """
    key = {"tenant_id": tenant, "id": endpoint.id, "created_at": endpoint.created_at}
    await db.execute(
        insert_into(endpoints).values(
            **key, **_row_values(endpoint), **await _seal(tenant, db, sealer, endpoint, signing)
        )
    )


async def get(tenant: TenantId, db: Db, name_or_id: str, *, locked: bool = False) -> OutboundWebhook | None:
    """The endpoint with this id or name; an id takes precedence. `locked` holds the row until the transaction ends."""
    is_named = or_(endpoints.c.id == name_or_id, endpoints.c.name == name_or_id)
    query = _select_public(tenant).where(is_named).order_by((endpoints.c.id == name_or_id).desc()).limit(1)
    query = query.with_for_update(key_share=True) if locked else query
    row = (await db.execute(query)).mappings().one_or_none()
    return _endpoint(row) if row else None


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[OutboundWebhook]:
    """One page of the tenant's endpoints, by default sorted by name."""
    query = select_page(_select_public(tenant), endpoints.c, "name", after=after, limit=limit, order=order)
    return [_endpoint(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's endpoints."""
    counted = select(func.count()).select_from(endpoints).where(endpoints.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def open_secrets(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, endpoint: WebhookEndpointId, *, now: datetime
) -> SigningSecrets | None:
    """The secrets that sign deliveries now; None if there is no such endpoint.

    Raises:
        SecretUnreadable: the secrets were changed, or no configured key decrypts them.
    """
    of_key = and_(data_keys.c.tenant_id == endpoints.c.tenant_id, data_keys.c.id == endpoints.c.data_key_id)
    query = select(endpoints.c.retires_at, endpoints.c.sealed, data_keys.c.wrapped)
    query = query.join_from(endpoints, data_keys, of_key).where(*_matches_id(tenant, endpoint))
    row = (await db.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    until: datetime | None = row["retires_at"]
    found = _decode(sealer.open(tenant, row["wrapped"], row["sealed"], *_encryption_context(endpoint, until)))
    return found if until is not None and until > now else SigningSecrets(current=found.current)


async def save(tenant: TenantId, db: Db, endpoint: OutboundWebhook) -> None:
    """Update an endpoint without its secrets; the caller has set its new version.

    Raises:
        NotFound: the tenant has no such endpoint.
    """
    await _update(tenant, db, endpoint.id, _row_values(endpoint))


async def save_secrets(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, endpoint: OutboundWebhook, signing: SigningSecrets
) -> None:
    """Update an endpoint with new secrets; the caller has set its new version.

    Raises:
        NotFound: the tenant has no such endpoint.
    """
    sealed = await _seal(tenant, db, sealer, endpoint, signing)
    await _update(tenant, db, endpoint.id, {**_row_values(endpoint), **sealed})


async def remove(tenant: TenantId, db: Db, endpoint: WebhookEndpointId) -> bool:
    """Delete an endpoint with its deliveries; True if it existed."""
    deleted = await db.execute(delete(endpoints).where(*_matches_id(tenant, endpoint)).returning(endpoints.c.id))
    return deleted.one_or_none() is not None


def sealed_context(row: RowMapping, _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _encryption_context(row["id"], row["retires_at"])


async def _update(tenant: TenantId, db: Db, endpoint: WebhookEndpointId, values: dict[str, Any]) -> None:
    changed = update(endpoints).where(*_matches_id(tenant, endpoint)).values(**values).returning(endpoints.c.id)
    if (await db.execute(changed)).one_or_none() is None:
        raise NotFound("There is no such webhook endpoint.")


async def _seal(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, endpoint: OutboundWebhook, signing: SigningSecrets
) -> dict[str, Any]:
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    plain, context = msgspec.json.encode(signing), _encryption_context(endpoint.id, endpoint.retires_at)
    return {"data_key_id": key_id, "sealed": sealer.seal(tenant, wrapped, plain, *context)}


def _encryption_context(endpoint: WebhookEndpointId, until: datetime | None) -> tuple[str, ...]:
    """The encryption context: secrets of another endpoint, or with another expiry, cannot be decrypted."""
    return ("webhook endpoint", endpoint, "" if until is None else str(round(until.timestamp())))


def _row_values(endpoint: OutboundWebhook) -> dict[str, Any]:
    own = {name: getattr(endpoint, name) for name in OutboundWebhook.__slots__ if name not in {"id", "created_at"}}
    return {**own, "kinds": list(endpoint.kinds)}


def _select_public(tenant: TenantId) -> Select[*tuple[object, ...]]:
    return select(*_PUBLIC_COLUMNS).where(endpoints.c.tenant_id == tenant)


def _matches_id(tenant: TenantId, endpoint: WebhookEndpointId) -> tuple[Any, ...]:
    return (endpoints.c.tenant_id == tenant, endpoints.c.id == endpoint)


def _endpoint(row: RowMapping) -> OutboundWebhook:
    columns: dict[str, Any] = {**row, "kinds": tuple(row["kinds"])}
    return OutboundWebhook(**columns)
