"""Browser sign-ins of people, with the encrypted tokens of their issuer.

A lease lets one replica at a time refresh the tokens.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import delete, exists, func, or_, select, update
from sqlalchemy import insert as insert_into

from gateway.domain.identifiers import KeyId, SignInId, TenantId
from gateway.domain.tenancy.issuers import IdentityClaims
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignIn
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.identity.tables import grants, sign_ins
from gateway.store.kinds.record_rows import read_record
from gateway.store.secrets import tenant_key
from gateway.store.tables import data_keys

_columns = sign_ins.c


async def insert(tenant: TenantId, db: Db, sealer: EnvelopeCipher, sign_in: SignIn, *, tokens: ProviderTokens) -> None:
    """Add a sign-in.

    Raises:
        NotFound: its issuer or person does not exist.
    """
    values = {
        "tenant_id": tenant,
        "id": sign_in.id,
        "issuer_id": sign_in.issuer,
        "person_id": sign_in.person,
        "requested_scopes": sorted(sign_in.requested_scopes),
        "created_at": sign_in.created_at,
        "session_ends_at": sign_in.session_ends_at,
    }
    await db.execute(
        insert_into(sign_ins).values(**values, **await _sealed_values(tenant, db, sealer, sign_in, tokens=tokens))
    )


async def get(tenant: TenantId, db: Db, sign_in: SignInId) -> SignIn | None:
    """The sign-in with this id."""
    row = (await db.execute(select(sign_ins).where(*_matches_id(tenant, sign_in)))).mappings().one_or_none()
    return None if row is None else _read(row)


async def open_tokens(tenant: TenantId, db: Db, sealer: EnvelopeCipher, sign_in: SignIn) -> ProviderTokens | None:
    """The tokens of a sign-in; None if it no longer exists.

    Raises:
        SecretUnreadable: the tokens were changed, or no configured key decrypts them.
    """
    joined = (data_keys.c.tenant_id == _columns.tenant_id) & (data_keys.c.id == _columns.data_key_id)
    query = select(_columns.sealed, data_keys.c.wrapped).join_from(sign_ins, data_keys, joined)
    row = (await db.execute(query.where(*_matches_id(tenant, sign_in.id)))).one_or_none()
    if row is None:
        return None
    return msgspec.msgpack.decode(sealer.open(tenant, row[1], row[0], *_bound(sign_in)), type=ProviderTokens)


async def take_lease(
    tenant: TenantId, db: Db, sign_in: SignInId, lease: str, *, now: datetime, until: datetime
) -> bool:
    """Let the holder of this lease refresh the tokens; False while another holder has a lease."""
    is_free = or_(_columns.leased_until.is_(None), _columns.leased_until < now)
    taken = update(sign_ins).where(*_matches_id(tenant, sign_in), is_free).values(lease=lease, leased_until=until)
    return (await db.execute(taken.returning(_columns.id))).one_or_none() is not None


async def end_lease(tenant: TenantId, db: Db, sign_in: SignInId, lease: str) -> None:
    """Release a lease without new tokens."""
    own = update(sign_ins).where(*_matches_id(tenant, sign_in), _columns.lease == lease)
    await db.execute(own.values(lease=None, leased_until=None))


async def save(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, sign_in: SignIn, *, tokens: ProviderTokens, lease: str
) -> bool:
    """Store the claims and tokens of a refresh, and end its lease; False if another holder has taken the lease."""
    values = await _sealed_values(tenant, db, sealer, sign_in, tokens=tokens)
    own = update(sign_ins).where(*_matches_id(tenant, sign_in.id), _columns.lease == lease)  # guard: sign-in-lease
    changed = await db.execute(own.values(lease=None, leased_until=None, **values).returning(_columns.id))
    return changed.one_or_none() is not None


async def end_session(tenant: TenantId, db: Db, sign_in: SignInId, *, at: datetime) -> None:
    """End the browser session of a sign-in, unless it has already ended."""
    own = update(sign_ins).where(*_matches_id(tenant, sign_in), _columns.session_ends_at > at)
    await db.execute(own.values(session_ends_at=at))


async def end_oldest(tenant: TenantId, db: Db, person: KeyId, *, limit: int, at: datetime) -> None:
    """End the browser sessions of a person, except the `limit` newest ones."""
    newest = select(_columns.id).where(_columns.tenant_id == tenant, _columns.person_id == person)
    newest = newest.where(_columns.session_ends_at > at).order_by(_columns.created_at.desc()).limit(limit)
    own = (_columns.tenant_id == tenant, _columns.person_id == person, _columns.session_ends_at > at)
    await db.execute(update(sign_ins).where(*own, _columns.id.not_in(newest)).values(session_ends_at=at))


async def remove_ended(tenant: TenantId, db: Db, *, now: datetime) -> datetime | None:
    """Delete the sign-ins without a grant whose session has ended; return the time at which the next one ends."""
    matches = (grants.c.tenant_id == _columns.tenant_id) & (grants.c.sign_in_id == _columns.id)
    is_over = (_columns.session_ends_at <= now, ~exists().where(matches))  # guard: sign-in-with-grants-kept
    await db.execute(delete(sign_ins).where(_columns.tenant_id == tenant, *is_over))
    own = (_columns.tenant_id == tenant, _columns.session_ends_at > now)
    query = select(func.min(_columns.session_ends_at)).where(*own)
    found: datetime | None = (await db.execute(query)).scalar_one()
    return found


async def _sealed_values(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, sign_in: SignIn, *, tokens: ProviderTokens
) -> dict[str, Any]:
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    return {
        "subject": sign_in.claims.subject,
        "groups": sorted(sign_in.claims.groups),
        "has_all_groups": sign_in.claims.has_all_groups,
        "scopes": sorted(sign_in.claims.scopes),
        "checked_at": sign_in.checked_at,
        "data_key_id": key_id,
        "sealed": sealer.seal(tenant, wrapped, msgspec.msgpack.encode(tokens), *_bound(sign_in)),
    }


def sealed_context(row: Mapping[Any, Any], _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _bound(_read(row))


def _bound(sign_in: SignIn) -> tuple[str, ...]:
    """The encryption context of the tokens."""
    return ("sign-in", sign_in.id, sign_in.issuer, sign_in.person)  # guard: sign-in-tokens-sealed


def _matches_id(tenant: TenantId, sign_in: SignInId) -> tuple[Any, ...]:
    return (_columns.tenant_id == tenant, _columns.id == sign_in)


def _read(row: Mapping[Any, Any]) -> SignIn:
    return read_record(SignIn, row, claims=read_record(IdentityClaims, row))
