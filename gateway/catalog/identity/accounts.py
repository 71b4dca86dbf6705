"""Accounts of users at upstreams: connected by users, listed, and disconnected by users or administrators.

An account belongs to a person or key, and is valid only for the terms of its credential under which it was connected.
It is deleted with its owner, its credential or its tenant.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import structlog

from gateway.catalog.credentials import find_credential, terms_of
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.identity.limits import MAX_ACCOUNTS, MAX_SHOWN_ACCOUNTS
from gateway.catalog.identity.person_records import record_use
from gateway.catalog.snapshots.credential_cache import read_external_secret
from gateway.catalog.transaction import Author, CatalogChange, CatalogContext, change
from gateway.domain.credentials import AccountTerms, CredentialKind, StoredCredential
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import AccountId, KeyId, TenantId, new_account_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.accounts import AccountOwner, AccountState, UserAccount
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import Conflict, Forbidden, GatewayError, LimitExceeded, NotFound, TokenRefused
from gateway.store.engine import Db
from gateway.store.identity import accounts, keys
from gateway.store.kinds.credentials import CREDENTIALS, open_named
from gateway.upstream.auth.token_endpoint import revoke_token, token_revocation

log = structlog.get_logger(__name__)

_LEASE = timedelta(seconds=45)
"""Lease of a refresh, longer than its request takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAccount:
    """An account with its tokens."""

    account: UserAccount
    tokens: ProviderTokens = field(repr=False)


async def find_account(
    tenant: TenantId, catalog: CatalogContext, key: KeyId, named: NamedCredential
) -> tuple[KeyId, OpenAccount | None]:
    """The owner for whom a key or grant acts, and the owner's account at a credential, with its tokens.

    An account that was connected under other terms is ignored.

    Raises:
        SecretUnreadable: the tokens were changed, or no configured key decrypts them.
    """
    async with catalog.store.transaction(tenant) as db:
        owner = await accounts.owner_of(tenant, db, key)
        found = await accounts.find(tenant, db, owner, named.id)
        if found is None or found.terms != terms_of(named):  # guard: account-terms
            return owner, None
        tokens = await accounts.open_tokens(tenant, db, catalog.sealer, found)
    return owner, None if tokens is None else OpenAccount(account=found, tokens=tokens)


async def open_client(tenant: TenantId, catalog: CatalogContext, name: str) -> NamedCredential:
    """The credential of accounts with this name, with the secret of its client.

    Raises:
        NotFound: the tenant has no credential of accounts of this name.
        SecretUnreadable, SecretUnavailable: the secret cannot be read.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await open_named(tenant, db, catalog.sealer, name)
    if found is None or not isinstance(found.delegation, AccountTerms):
        raise NotFound("There is no such page.")
    return await read_external_secret(catalog.store, catalog.secret_stores, tenant, found) or found


async def connect_account(
    catalog: CatalogContext,
    owner: AccountOwner,
    named: NamedCredential,
    tokens: ProviderTokens,
    *,
    scopes: tuple[str, ...],
    correlation_id: str,
) -> UserAccount:
    """Store the account that a user has connected; it replaces the user's earlier account at the credential.

    Raises:
        Conflict: the credential was changed concurrently; nothing was stored.
        Forbidden: the person or the key was removed or denied concurrently.
        LimitExceeded: the tenant has too many accounts.
        AuditUnavailable: the connection could not be recorded.
    """
    tenant, now = owner.tenant, datetime.now(UTC)
    async with catalog.store.transaction(tenant) as db:
        current = await find_credential(tenant, db, named.name)
        terms = terms_of(current)
        if terms is None or (current.id, terms) != (named.id, terms_of(named)):  # guard: account-terms-unchanged
            raise Conflict("The credential was changed during the connection; begin again.")
        holder = await keys.get(tenant, db, owner.id)
        if holder is None or holder.revoked_at is not None:  # guard: account-owner-valid
            raise Forbidden("You may no longer use the tenant; ask its administrator.")
        former = await accounts.find(tenant, db, owner.id, named.id)
        if former is None and await accounts.count(tenant, db) >= MAX_ACCOUNTS:  # guard: accounts-bounded
            raise LimitExceeded(f"the tenant has {MAX_ACCOUNTS} accounts (the limit); disconnect unused ones")
        new_account = UserAccount(
            id=new_account_id(),
            owner=owner.id,
            subject=owner.subject,
            credential=current.id,
            credential_name=current.name,
            terms=terms,
            scopes=scopes,
            state=AccountState.CONNECTED,
            created_at=now,
            refreshed_at=now,
            version=1,
        )
        await accounts.enter(tenant, db, catalog.sealer, new_account, tokens=tokens)
        detail: dict[str, object] = {"account": new_account.id, "credential": current.name, "scopes": list(scopes)}
        await record_use(catalog, owner, "account.connect", correlation_id=correlation_id, detail=detail)
    return new_account


async def list_connectable(
    catalog: CatalogContext, owner: AccountOwner
) -> Sequence[tuple[StoredCredential, UserAccount | None]]:
    """The tenant's credentials of accounts, by name, each with the account of this owner if there is one."""
    tenant = owner.tenant
    async with catalog.store.transaction(tenant) as db:
        found = await CREDENTIALS.page(tenant, db, after=None, limit=MAX_SHOWN_ACCOUNTS)
        own = await accounts.page(tenant, db, after=None, limit=MAX_SHOWN_ACCOUNTS, owner=owner.id)
    by_credential = {account.credential: account for account in own}
    return [(each, by_credential.get(each.id)) for each in found if each.kind is CredentialKind.USER]


async def get_account(tenant: TenantId, catalog: CatalogContext, account: str) -> UserAccount:
    """The account of this id.

    Raises:
        NotFound: the tenant has no such account.
    """
    async with catalog.store.transaction(tenant) as db:
        return await _find(tenant, db, account)


async def page_accounts(
    tenant: TenantId, catalog: CatalogContext, *, after: str | None, limit: int, order: Order = KEYED
) -> Sequence[UserAccount]:
    """One page of the tenant's accounts, by default sorted by id."""
    async with catalog.store.transaction(tenant) as db:
        return await accounts.page(tenant, db, after=after, limit=limit, order=order)


async def disconnect_account(
    tenant: TenantId, catalog: CatalogContext, account: str, *, by: Author, expected: Expected = None
) -> None:
    """Delete an account for an administrator, and revoke its tokens at the upstream if possible.

    Raises:
        NotFound: the tenant has no such account.
        PreconditionFailed: the current version matches no expected tag.
    """
    entry = CatalogChange(action="account.disconnect", target=account)
    async with change(tenant, catalog, entry, by=by) as db:
        found = await _find(tenant, db, account)
        check_version(found, expected)
        entry.detail = {"subject": found.subject, "credential": found.credential_name}
        opened = await _open(tenant, catalog, db, found)
        await accounts.remove(tenant, db, found.id)
    await _revoke(tenant, catalog, opened)


async def disconnect_own(catalog: CatalogContext, owner: AccountOwner, name: str, *, correlation_id: str) -> bool:
    """Delete the account of a user at a credential; False if there is none. See `disconnect_account`.

    Raises:
        NotFound: the tenant has no such credential.
        AuditUnavailable: it could not be recorded.
    """
    tenant = owner.tenant
    async with catalog.store.transaction(tenant) as db:
        credential = await find_credential(tenant, db, name)
        found = await accounts.find(tenant, db, owner.id, credential.id)
        if found is None:
            return False
        opened = await _open(tenant, catalog, db, found)
        await accounts.remove(tenant, db, found.id)
        detail: dict[str, object] = {"account": found.id, "credential": credential.name}
        await record_use(catalog, owner, "account.disconnect", correlation_id=correlation_id, detail=detail)
    await _revoke(tenant, catalog, opened)
    return True


async def take_lease(tenant: TenantId, catalog: CatalogContext, account: AccountId) -> str | None:
    """Acquire the lease to refresh the tokens of an account; None while another request holds it."""
    lease, now = secrets.token_hex(16), datetime.now(UTC)
    async with catalog.store.transaction(tenant) as db:
        is_taken = await accounts.take_lease(tenant, db, account, lease, now=now, until=now + _LEASE)
    return lease if is_taken else None


async def end_lease(tenant: TenantId, catalog: CatalogContext, account: AccountId, lease: str) -> None:
    """Release the lease, so that other requests can refresh the tokens."""
    async with catalog.store.transaction(tenant) as db:
        await accounts.end_lease(tenant, db, account, lease)


async def save_refreshed(
    tenant: TenantId, catalog: CatalogContext, account: UserAccount, tokens: ProviderTokens, *, lease: str
) -> bool:
    """Store the tokens of a refresh; False if its lease has expired, or the account was deleted."""
    async with catalog.store.transaction(tenant) as db:
        return await accounts.save(tenant, db, catalog.sealer, account, tokens=tokens, lease=lease)


async def note_refused(catalog: CatalogContext, owner: AccountOwner, account: UserAccount, *, lease: str) -> None:
    """Record that the upstream no longer refreshes the tokens of an account; its user has to connect it again.

    Raises:
        AuditUnavailable: it could not be recorded; the account is unchanged.
    """
    async with catalog.store.transaction(owner.tenant) as db:
        if await accounts.end_lease(owner.tenant, db, account.id, lease, state=AccountState.REFUSED):
            detail: dict[str, object] = {"account": account.id, "credential": account.credential_name}
            outcome = TokenRefused.code
            await record_use(catalog, owner, "account.refresh", correlation_id="", outcome=outcome, detail=detail)


async def _find(tenant: TenantId, db: Db, account: str) -> UserAccount:
    found = await accounts.get(tenant, db, account)
    if found is None:
        raise NotFound("no such account")
    return found


async def _open(
    tenant: TenantId, catalog: CatalogContext, db: Db, account: UserAccount
) -> tuple[NamedCredential, ProviderTokens] | None:
    """The client and tokens with which an account is revoked; None if they are not available."""
    try:
        credential = await open_named(tenant, db, catalog.sealer, account.credential_name)
        tokens = await accounts.open_tokens(tenant, db, catalog.sealer, account)
    except GatewayError:
        return None
    return None if credential is None or tokens is None else (credential, tokens)


async def _revoke(
    tenant: TenantId, catalog: CatalogContext, opened: tuple[NamedCredential, ProviderTokens] | None
) -> None:
    """Revoke the tokens of a deleted account at the upstream. A failure is only logged."""
    if opened is None:
        return
    credential, tokens = opened
    terms = credential.delegation
    if not isinstance(terms, AccountTerms) or terms.revocation_url is None:
        return
    try:
        credential = await read_external_secret(catalog.store, catalog.secret_stores, tenant, credential) or credential
        client = Credential(username=terms.client_id, value=credential.credential.value)
        token = tokens.refresh_token or tokens.access_token
        revocation = token_revocation(credential.name, terms.revocation_url, client, token)
        if not await revoke_token(catalog.upstream, tenant, revocation):
            log.warning("account_not_revoked_at_upstream", tenant=tenant, credential=credential.name)
    except GatewayError as error:
        log.warning("account_not_revoked_at_upstream", tenant=tenant, credential=credential.name, reason=error.code)
