"""User accounts at upstreams, with encrypted tokens; a lease lets one replica at a time refresh the tokens.

The encrypted tokens are bound to the account, its owner, its credential, and the terms at the time of the connection.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import Select, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_into

from gateway.domain.identifiers import AccountId, CredentialId, KeyId, TenantId
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.accounts import AccountState, UserAccount
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.store.encryption import EnvelopeCipher
from gateway.store.engine import Db
from gateway.store.identity.tables import accounts, grants
from gateway.store.kinds.record_rows import columns_of, read_record
from gateway.store.pagination import select_page
from gateway.store.secrets import tenant_key
from gateway.store.tables import credentials, data_keys

_columns = accounts.c


async def enter(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, account: UserAccount, *, tokens: ProviderTokens
) -> None:
    """Store an account; it replaces the owner's earlier account at the same credential.

    If the owner or the credential was removed concurrently, the database raises an error.
    """
    await remove_of(tenant, db, account.owner, account.credential)
    values = columns_of(account, "credential_name") | await _sealed_values(tenant, db, sealer, account, tokens=tokens)
    await db.execute(insert_into(accounts).values(tenant_id=tenant, **values))


async def owner_of(tenant: TenantId, db: Db, credential: KeyId) -> KeyId:
    """The owner for whom a key or grant acts: the person of a grant, otherwise the key itself."""
    query = select(grants.c.person_id).where(grants.c.tenant_id == tenant, grants.c.id == credential)
    found = (await db.execute(query)).scalar_one_or_none()
    return credential if found is None else KeyId(found)


async def find(tenant: TenantId, db: Db, owner: KeyId, credential: str) -> UserAccount | None:
    """The account of an owner at a credential."""
    query = _select_accounts(tenant).where(_columns.owner_id == owner, _columns.credential_id == credential)
    row = (await db.execute(query)).mappings().one_or_none()
    return None if row is None else read_record(UserAccount, row)


async def get(tenant: TenantId, db: Db, account: str) -> UserAccount | None:
    """The account with this id."""
    row = (await db.execute(_select_accounts(tenant).where(_columns.id == account))).mappings().one_or_none()
    return None if row is None else read_record(UserAccount, row)


async def page(
    tenant: TenantId, db: Db, *, after: str | None, limit: int, order: Order = KEYED, owner: KeyId | None = None
) -> Sequence[UserAccount]:
    """One page of the tenant's accounts, or of one owner's, by default sorted by id."""
    own = _select_accounts(tenant) if owner is None else _select_accounts(tenant).where(_columns.owner_id == owner)
    query = select_page(own, _columns, "id", after=after, limit=limit, order=order)
    return [read_record(UserAccount, row) for row in (await db.execute(query)).mappings()]


async def count(tenant: TenantId, db: Db) -> int:
    """Number of accounts of the tenant."""
    counted = select(func.count()).select_from(accounts).where(_columns.tenant_id == tenant)
    return int((await db.execute(counted)).scalar_one())


async def open_tokens(tenant: TenantId, db: Db, sealer: EnvelopeCipher, account: UserAccount) -> ProviderTokens | None:
    """The tokens of an account; None if it no longer exists.

    Raises:
        SecretUnreadable: the tokens were changed, or no configured key decrypts them.
    """
    joined = (data_keys.c.tenant_id == _columns.tenant_id) & (data_keys.c.id == _columns.data_key_id)
    query = select(_columns.sealed, data_keys.c.wrapped).join_from(accounts, data_keys, joined)
    row = (await db.execute(query.where(*_matches_id(tenant, account.id)))).one_or_none()
    if row is None:
        return None
    return msgspec.msgpack.decode(sealer.open(tenant, row[1], row[0], *_bound(account)), type=ProviderTokens)


async def take_lease(
    tenant: TenantId, db: Db, account: AccountId, lease: str, *, now: datetime, until: datetime
) -> bool:
    """Let the holder of this lease refresh the tokens; False while another holder has a lease."""
    is_free = or_(_columns.leased_until.is_(None), _columns.leased_until < now)
    taken = update(accounts).where(*_matches_id(tenant, account), is_free).values(lease=lease, leased_until=until)
    return (await db.execute(taken.returning(_columns.id))).one_or_none() is not None


async def end_lease(
    tenant: TenantId, db: Db, account: AccountId, lease: str, *, state: AccountState | None = None
) -> bool:
    """Release a lease without new tokens, with a new state if there is one; False if the lease was lost."""
    changed = {} if state is None else {"state": state.value, "version": _columns.version + 1}
    own = update(accounts).where(*_matches_id(tenant, account), _columns.lease == lease)
    updated = await db.execute(own.values(lease=None, leased_until=None, **changed).returning(_columns.id))
    return updated.one_or_none() is not None


async def save(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, account: UserAccount, *, tokens: ProviderTokens, lease: str
) -> bool:
    """Store the tokens of a refresh, and end its lease; False if another holder has taken the lease."""
    values = await _sealed_values(tenant, db, sealer, account, tokens=tokens)
    own = update(accounts).where(*_matches_id(tenant, account.id), _columns.lease == lease)  # guard: account-lease
    more = {"lease": None, "leased_until": None, "version": _columns.version + 1}
    return (await db.execute(own.values(**more, **values).returning(_columns.id))).one_or_none() is not None


async def remove(tenant: TenantId, db: Db, account: AccountId) -> bool:
    """Delete an account; True if it existed."""
    deleted = delete(accounts).where(*_matches_id(tenant, account)).returning(_columns.id)
    return (await db.execute(deleted)).one_or_none() is not None


async def remove_of(tenant: TenantId, db: Db, owner: KeyId, credential: CredentialId | None = None) -> None:
    """Delete the account of an owner at a credential, or all accounts of the owner."""
    deleted = delete(accounts).where(_columns.tenant_id == tenant, _columns.owner_id == owner)
    await db.execute(deleted if credential is None else deleted.where(_columns.credential_id == credential))


async def remove_other_terms(tenant: TenantId, db: Db, credential: CredentialId, terms: str | None) -> int:
    """Delete the accounts that were connected under other terms of a credential; return their number."""
    own = (_columns.tenant_id == tenant, _columns.credential_id == credential)
    deleted = delete(accounts).where(*own)
    deleted = deleted if terms is None else deleted.where(_columns.terms != terms)
    return len((await db.execute(deleted.returning(_columns.id))).all())


def sealed_context(row: Mapping[Any, Any], _: str) -> tuple[str, ...]:
    """Callback for key rotation: the encryption context of a stored row."""
    return _context(row["id"], row["owner_id"], row["credential_id"], row["terms"])


def _bound(account: UserAccount) -> tuple[str, ...]:
    return _context(account.id, account.owner, account.credential, account.terms)


def _context(account: str, owner: str, credential: str, terms: str) -> tuple[str, ...]:
    """The encryption context of the tokens."""
    return ("account", account, owner, credential, terms)  # guard: account-tokens-sealed


async def _sealed_values(
    tenant: TenantId, db: Db, sealer: EnvelopeCipher, account: UserAccount, *, tokens: ProviderTokens
) -> dict[str, Any]:
    key_id, wrapped = await tenant_key(tenant, db, sealer)
    return {
        "scopes": list(account.scopes),
        "state": account.state.value,
        "refreshed_at": account.refreshed_at,
        "data_key_id": key_id,
        "sealed": sealer.seal(tenant, wrapped, msgspec.msgpack.encode(tokens), *_bound(account)),
    }


def _select_accounts(tenant: TenantId) -> Select[*tuple[Any, ...]]:
    joined = (credentials.c.tenant_id == _columns.tenant_id) & (credentials.c.id == _columns.credential_id)
    names = [column for column in _columns if column.name not in {"sealed", "data_key_id", "lease", "leased_until"}]
    query = select(*names, credentials.c.name.label("credential_name")).join_from(accounts, credentials, joined)
    return query.where(_columns.tenant_id == tenant)


def _matches_id(tenant: TenantId, account: AccountId) -> tuple[Any, ...]:
    return (_columns.tenant_id == tenant, _columns.id == account)
