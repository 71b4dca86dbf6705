"""Access tokens of users' accounts, stored in the database. A lease limits refreshes to one at a time per account.

Most servers accept a refresh token once. So a refresh holds the lease, which applies to all replicas, and reads the
tokens again under it. The refresh cannot be cancelled until the new tokens are stored. After a crash, the lease expires
and the old refresh token is used again; if the server refuses it, the user has to connect the account again.
"""

import hashlib
import hmac
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import anyio
import structlog

from gateway.catalog.identity.accounts import (
    OpenAccount,
    end_lease,
    find_account,
    note_refused,
    save_refreshed,
    take_lease,
)
from gateway.catalog.identity.issuers import get_issuer
from gateway.catalog.transaction import CatalogContext
from gateway.domain.credentials import AccountTerms, connect_url
from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.http.requests import Credential, NamedCredential
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.refusals import AccountRequired
from gateway.domain.tenancy.accounts import AccountOwner, AccountState
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.sign_ins import ProviderTokens
from gateway.errors import CredentialMissing, GatewayError, TokenRefused, Unavailable, UpstreamTimeout
from gateway.identity.oauth.limits import (
    ACCOUNT_CACHE_S,
    EXPIRY_MARGIN_S,
    MAX_REFRESH_POLLS,
    REFRESH_POLL_S,
    REFRESH_S,
    REFUSAL_WINDOW_S,
)
from gateway.upstream.auth.token_endpoint import TokenResponse, fetch_tokens, token_refresh

log = structlog.get_logger(__name__)

LINK_PURPOSE = "account links"
_CAPACITY = 4096
_EXPIRY_MARGIN_SHARE = 0.2
_STORE_TRIES = 5
_NOT_CONNECTED = "The call acts with your own account ({name}), and you have not connected one yet."
_NO_SIGN_IN = (
    "People of the issuer {issuer!r} cannot connect one, because they cannot sign in at the gateway: ask the tenant's"
    " administrator to set `sign_in` of the issuer."
)
_REFUSED = "The upstream accepts the tokens of your account ({name}) no more."


class AccountLinks:
    """Links to the account pages, bound to a user and a credential by a keyed digest.

    The digest does not authenticate: the page compares it with the digest of the signed-in user.
    """

    def __init__(self, key: bytes, *, public_url: str | None) -> None:
        self._key = key
        self._public_url = public_url

    def of(self, tenant: TenantId, slug: str, owner: KeyId, named: NamedCredential) -> str:
        """Return the URL of a credential's account page for one user.

        Raises:
            CredentialMissing: the gateway has no public URL.
        """
        return f"{connect_url(self._origin(), slug, named.name, 'account')}?for={self.tag(tenant, owner, named.id)}"

    def callback(self, slug: str, name: str) -> str:
        """Return the redirect URI of a credential. Each credential has its own, so that servers cannot be mixed up."""
        return connect_url(self._origin(), slug, name, "callback")

    def tag(self, tenant: TenantId, owner: KeyId, credential: str) -> str:
        """Return the digest of a user and a credential."""
        text = "\0".join((tenant, owner, credential))
        return hmac.digest(self._key, text.encode(), hashlib.sha256).hex()[:32]

    def _origin(self) -> str:
        if self._public_url is None:  # guard: account-link-host
            raise CredentialMissing("Users connect accounts at the gateway's public URL: set GATEWAY_PUBLIC_URL.")
        return self._public_url


class StoredAccountTokens:
    """Implementation of `gateway.upstream.auth.delegation.AccountTokens` with the accounts in the database."""

    def __init__(self, catalog: CatalogContext, links: AccountLinks) -> None:
        self._catalog = catalog
        self._links = links
        self._held = FairCache[str, tuple[float, ProviderTokens]](_CAPACITY)
        self._refused = FairCache[str, float](_CAPACITY)
        self._locks: dict[tuple[TenantId, str], anyio.Lock] = {}

    async def obtain(self, principal: Principal, named: NamedCredential, terms: AccountTerms) -> str:
        """Return the access token of the caller's account; see `AccountTokens`."""
        tenant, name = principal.tenant, _cache_key(principal, named, terms)
        if (held := self._find_cached(tenant, name)) is not None:
            return held
        async with self._account_lock(tenant, name):
            # Looked up again: the caller that held the lock before may have stored the token.
            return self._find_cached(tenant, name) or await self._find(principal, named, terms)

    async def renew(self, principal: Principal, named: NamedCredential, terms: AccountTerms, refused: str) -> str:
        """Return another access token after the upstream refused this one; see `AccountTokens`."""
        name = _cache_key(principal, named, terms)
        # Dropped before the lock, so that no other call takes the refused token meanwhile.
        self._held.drop(principal.tenant, name)
        async with self._account_lock(principal.tenant, name):
            return await self._find(principal, named, terms, refused=refused)

    async def _find(
        self, principal: Principal, named: NamedCredential, terms: AccountTerms, *, refused: str | None = None
    ) -> str:
        tenant, name = principal.tenant, _cache_key(principal, named, terms)
        may_refresh = refused is None or self._may_refresh(tenant, name)
        for _ in range(MAX_REFRESH_POLLS):
            owner, found = await find_account(tenant, self._catalog, principal.key, named)
            if found is None or found.account.state is AccountState.REFUSED:
                text = _NOT_CONNECTED if found is None else _REFUSED
                raise await self._account_required(principal, named, owner, text, is_sent=refused is not None)
            if found.tokens.access_token != refused and _is_fresh(found.tokens):
                self._held.put(tenant, name, (time.monotonic(), found.tokens))
                return found.tokens.access_token
            if found.tokens.access_token == refused and not may_refresh:  # guard: account-refresh-once
                raise await self._account_required(principal, named, owner, _REFUSED, is_sent=refused is not None)
            lease = await take_lease(tenant, self._catalog, found.account.id)
            if lease is not None:
                with anyio.CancelScope(shield=True):  # a cancellation would lose the new refresh token
                    return await self._refresh(principal, named, terms, lease=lease, refused=refused)
            await anyio.sleep(REFRESH_POLL_S)
        raise Unavailable("another request refreshes the tokens of the account; retry later", retry_after_s=1.0)

    def _find_cached(self, tenant: TenantId, name: str) -> str | None:
        """Return the cached access token; None if it is older than `ACCOUNT_CACHE_S`."""
        held = self._held.get(tenant, name)
        is_usable = held is not None and time.monotonic() - held[0] < ACCOUNT_CACHE_S and _is_fresh(held[1])
        return held[1].access_token if held is not None and is_usable else None

    def _may_refresh(self, tenant: TenantId, name: str) -> bool:
        """True unless an earlier refusal was within `REFUSAL_WINDOW_S`, which means that a refresh does not help."""
        before = self._refused.get(tenant, name)
        self._refused.put(tenant, name, time.monotonic())
        return before is None or time.monotonic() - before > REFUSAL_WINDOW_S

    async def _refresh(
        self, principal: Principal, named: NamedCredential, terms: AccountTerms, *, lease: str, refused: str | None
    ) -> str:
        """Refresh the tokens under the lease, unless another request refreshed them before the lease was acquired."""
        tenant, catalog = principal.tenant, self._catalog
        owner, found = await find_account(tenant, catalog, principal.key, named)
        if found is None:
            raise await self._account_required(principal, named, owner, _NOT_CONNECTED, is_sent=refused is not None)
        before, account = found.tokens, found.account
        if before.access_token != refused and _is_fresh(before):
            await end_lease(tenant, catalog, account.id, lease)
            return before.access_token
        if before.refresh_token is None:
            await end_lease(tenant, catalog, account.id, lease)
            raise await self._account_required(principal, named, owner, _REFUSED, is_sent=refused is not None)
        client = Credential(username=terms.client_id, value=named.credential.value)
        wanted = token_refresh(named.name, terms.token_url, client, before.refresh_token)
        try:
            with anyio.fail_after(REFRESH_S):
                response = await fetch_tokens(catalog.upstream, tenant, wanted)
        except TokenRefused as error:
            if error.error != "invalid_grant":
                await end_lease(tenant, catalog, account.id, lease)
                raise
            acting = AccountOwner(tenant=tenant, id=owner, subject=principal.subject, name=principal.name)
            await note_refused(catalog, acting, account, lease=lease)
            raise await self._account_required(principal, named, owner, _REFUSED, is_sent=refused is not None) from None
        except (GatewayError, TimeoutError) as error:
            await end_lease(tenant, catalog, account.id, lease)
            if isinstance(error, GatewayError):
                raise
            raise UpstreamTimeout(f"The token endpoint of {named.name!r} did not respond in time.") from None
        renewed = replace(account, refreshed_at=datetime.now(UTC))
        tokens = tokens_of(response, before)
        await self._store(tenant, OpenAccount(account=renewed, tokens=tokens), lease)
        self._held.put(tenant, _cache_key(principal, named, terms), (time.monotonic(), tokens))
        return tokens.access_token

    async def _store(self, tenant: TenantId, renewed: OpenAccount, lease: str) -> None:
        """Store refreshed tokens. Retry if the database is unavailable, because the old refresh token is consumed."""
        for tried in range(_STORE_TRIES):
            try:
                if not await save_refreshed(tenant, self._catalog, renewed.account, renewed.tokens, lease=lease):
                    log.warning("account_refresh_late", account=renewed.account.id)
                return
            except Unavailable:
                if tried == _STORE_TRIES - 1:
                    raise
                await anyio.sleep(2**tried * REFRESH_POLL_S)

    async def _account_required(
        self, principal: Principal, named: NamedCredential, owner: KeyId, text: str, *, is_sent: bool
    ) -> AccountRequired:
        """Return the error with the link to the page of the account.

        Raises:
            CredentialMissing: the caller cannot sign in on the page, because the issuer of the token has no `sign_in`.
        """
        if principal.token is not None and not is_sent:
            issuer = await get_issuer(principal.tenant, self._catalog, principal.token.issuer)
            if issuer.sign_in is None:
                raise CredentialMissing(f"{text.format(name=named.name)} {_NO_SIGN_IN.format(issuer=issuer.name)}")
        url = self._links.of(principal.tenant, principal.slug, owner, named)
        message = f"{text.format(name=named.name)} Open {url} in a browser, connect your account, and call again."
        return AccountRequired(message, credential=named.name, url=url, is_sent=is_sent)

    @asynccontextmanager
    async def _account_lock(self, tenant: TenantId, name: str) -> AsyncGenerator[None]:
        """Serialize blocks per account on this replica, so that waiting calls do not all read the database."""
        lock = self._locks.setdefault((tenant, name), anyio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked() and not lock.statistics().tasks_waiting:
                self._locks.pop((tenant, name), None)


def tokens_of(response: TokenResponse, before: ProviderTokens | None = None) -> ProviderTokens:
    """Return the tokens of a response; without a new refresh token, the old one is kept.

    Without a refresh token or a declared lifetime, the access token is used until the upstream refuses it.
    """
    refresh_token = response.refresh_token or (None if before is None else before.refresh_token)
    token = response.access_token
    is_bounded = refresh_token is not None and response.declares_life
    return ProviderTokens(
        access_token=token.value,
        access_ends_at=token.expires_at - min(EXPIRY_MARGIN_S, token.life_s * _EXPIRY_MARGIN_SHARE)
        if is_bounded
        else math.inf,
        refresh_token=refresh_token,
    )


def _is_fresh(tokens: ProviderTokens) -> bool:
    return tokens.access_ends_at > time.time()


def _cache_key(principal: Principal, named: NamedCredential, terms: AccountTerms) -> str:
    """Return the cache key: the caller, and every part of the credential that affects where tokens are sent."""
    parts = (principal.key, named.id, repr(terms), named.place, named.field, *named.origins)
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
