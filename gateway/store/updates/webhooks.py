"""A tenant's inbound webhooks, with their encrypted signing secrets."""

from collections.abc import Sequence
from datetime import datetime

import msgspec
from sqlalchemy import RowMapping, Select, and_, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import TenantId, WebhookId
from gateway.domain.order import KEYED, Order
from gateway.domain.updates.webhooks import SigningSecrets, Webhook
from gateway.errors import NotFound
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys, webhooks

_PUBLIC_COLUMNS = (
    webhooks.c.id,
    webhooks.c.name,
    webhooks.c.version,
    webhooks.c.retires_at,
    webhooks.c.created_at,
    webhooks.c.updated_at,
)


async def insert(tenant: TenantId, db: Db, sealer: EnvelopeCipher, webhook: Webhook, signing: SigningSecrets) -> None:
    """Add a webhook.

    Raises:
        NameTaken: the tenant already has a webhook with this name.
        NotFound: there is no such tenant.
    """
    sealed = await _seal(tenant, db, sealer, webhook, signing)
    key = {"tenant_id": tenant, "id": webhook.id, "created_at": webhook.created_at}
    await db.execute(insert_into(webhooks).values(**key, **sealed))


async def get(tenant: TenantId, db: Db, name_or_id: str) -> Webhook | None:
    """The webhook with this id or name without its secrets; an id takes precedence."""
    is_named = or_(webhooks.c.id == name_or_id, webhooks.c.name == name_or_id)
    query = _select_public(tenant).where(is_named).order_by((webhooks.c.id == name_or_id).desc()).limit(1)
    row = (await db.execute(query)).mappings().one_or_none()
    return _from_row(row) if row else None


async def page(tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED) -> Sequence[Webhook]:
    """One page of the tenant's webhooks without their secrets, by default sorted by name."""
    query = select_page(_select_public(tenant), webhooks.c, "name", after=after, limit=limit, order=order)
    return [_from_row(row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of the tenant's webhooks."""
    counted = select(func.count()).select_from(webhooks).where(webhooks.c.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def open_secrets(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, webhook: WebhookId, *, now: datetime
) -> SigningSecrets | None:
    """The secrets that may sign deliveries now; None if there is no such webhook.

    Raises:
        SecretUnreadable: the secrets were changed, or no configured key decrypts them.
    """
    of_key = and_(data_keys.c.tenant_id == webhooks.c.tenant_id, data_keys.c.id == webhooks.c.data_key_id)
    query = select(*_PUBLIC_COLUMNS, webhooks.c.sealed, data_keys.c.wrapped).join_from(webhooks, data_keys, of_key)
    rows = await db.execute(query.where(webhooks.c.tenant_id == tenant, webhooks.c.id == webhook))
    row = rows.mappings().one_or_none()
    if row is None:
        return None
    found = _from_row(row)
    plain = msgspec.json.decode(
        sealer.open(tenant, row["wrapped"], row["sealed"], *_sealing_context(found)), type=_PlainSecrets
    )
    is_good = found.retires_at is not None and found.retires_at > now
    return SigningSecrets(current=plain.current, previous=plain.previous if is_good else None)


async def save(tenant: TenantId, db: Db, sealer: EnvelopeCipher, webhook: Webhook, signing: SigningSecrets) -> None:
    """Store a webhook with its secrets, under the version that the webhook contains.

    Raises:
        NotFound: the tenant has no such webhook.
    """
    sealed = await _seal(tenant, db, sealer, webhook, signing)
    matches = (webhooks.c.tenant_id == tenant, webhooks.c.id == webhook.id)
    changed = await db.execute(update(webhooks).where(*matches).values(**sealed).returning(webhooks.c.id))
    if changed.one_or_none() is None:
        raise NotFound("There is no such webhook.")


async def remove(tenant: TenantId, db: Db, webhook: WebhookId) -> bool:
    """Delete a webhook; True if it existed."""
    matches = (webhooks.c.tenant_id == tenant, webhooks.c.id == webhook)
    return (await db.execute(delete(webhooks).where(*matches).returning(webhooks.c.id))).one_or_none() is not None


def sealed_context(row: RowMapping, _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _sealing_context(_from_row(row))


class _PlainSecrets(msgspec.Struct):
    current: str
    previous: str | None = None


async def _seal(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, webhook: Webhook, signing: SigningSecrets
) -> dict[str, object]:
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    plain = msgspec.json.encode(_PlainSecrets(current=signing.current, previous=signing.previous))
    return {
        "name": webhook.name,
        "version": webhook.version,
        "retires_at": webhook.retires_at,
        "data_key_id": key_id,
        "sealed": sealer.seal(tenant, wrapped, plain, *_sealing_context(webhook)),
        "updated_at": webhook.updated_at,
    }


def _sealing_context(webhook: Webhook) -> tuple[str, ...]:
    """The encryption context: secrets of another webhook or version, or with another expiry, cannot be decrypted."""
    until = "" if webhook.retires_at is None else str(round(webhook.retires_at.timestamp()))
    return ("webhook", webhook.id, str(webhook.version), until)


def _select_public(tenant: TenantId) -> Select[*tuple[object, ...]]:
    return select(*_PUBLIC_COLUMNS).where(webhooks.c.tenant_id == tenant)


def _from_row(row: RowMapping) -> Webhook:
    return Webhook(
        id=WebhookId(row["id"]),
        name=row["name"],
        version=row["version"],
        retires_at=row["retires_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
