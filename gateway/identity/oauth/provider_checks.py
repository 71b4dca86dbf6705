"""Rechecks of stored sign-ins: refreshed claims and groups, and tokens of the provider.

With a refresh token of the provider, claims older than five minutes are refreshed; while the provider is unavailable,
they remain valid for an hour. Without one, a sign-in is valid for the time that the issuer's client permits. A lease
gives the refresh token to one replica at a time, because providers treat a second use as theft.
"""

import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Never

import anyio
import structlog

from gateway.catalog.identity.grants import end_grants_of
from gateway.catalog.identity.sign_ins import (
    end_lease,
    open_client_secret,
    open_provider_tokens,
    save_provider_tokens,
    take_lease,
)
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignedInPerson, SignIn
from gateway.errors import GatewayError, TokenRefused, Unavailable
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.oauth.relying_party import RelyingParty, client_of

log = structlog.get_logger(__name__)

FRESH = timedelta(minutes=5)
"""Age up to which claims and tokens are used without a refresh."""
_STALE = timedelta(hours=1)
_EXPIRY_MARGIN_S = 30.0
_ENDED = frozenset({"invalid_grant", "access_denied"})
_SIGN_IN_AGAIN = "The provider does not know this sign-in any more; sign in again."


class ProviderChecks:
    """Refreshes the claims and tokens of sign-ins."""

    def __init__(self, catalog: CatalogContext, provider: RelyingParty) -> None:
        self._catalog = catalog
        self._provider = provider

    async def check(self, tenant: TenantId, holder: SignedInPerson, *, within: timedelta = FRESH) -> SignedInPerson:
        """Return the holder with valid claims; with a refresh token, the claims are at most `within` old.

        Raises:
            SignInRefused: the provider no longer knows the person, or the sign-in is too old.
            Unavailable: the provider is unavailable, and the claims are too old.
        """
        sign_in, now = holder.sign_in, datetime.now(UTC)
        if now - sign_in.checked_at <= within:
            return holder
        tokens = await open_provider_tokens(tenant, self._catalog, sign_in)
        if tokens is None:
            raise SignInRefused(_SIGN_IN_AGAIN)
        if tokens.refresh_token is None:
            max_age = timedelta(seconds=client_of(holder.issuer).max_unchecked_s)
            if now - sign_in.checked_at > max_age:  # guard: sign-in-unchecked
                raise SignInRefused("The sign-in is too old, and the provider gave no refresh token; sign in again.")
            return holder
        renewed = await self._renew(tenant, holder, tokens)
        if renewed is not None:
            return replace(holder, sign_in=renewed[0])
        if now - sign_in.checked_at > _STALE:  # guard: sign-in-stale
            raise Unavailable("the provider cannot be asked about the person now; retry later", retry_after_s=5.0)
        return holder

    async def subject_token(self, tenant: TenantId, holder: SignedInPerson) -> str:
        """Return a valid access token of the provider, which is sent only to the provider's own token endpoint.

        Raises:
            SignInRefused: the provider no longer knows the person, or issued no refresh token.
            Unavailable: the provider is unavailable.
        """
        tokens = await open_provider_tokens(tenant, self._catalog, holder.sign_in)
        if tokens is None:
            raise SignInRefused(_SIGN_IN_AGAIN)
        if tokens.access_ends_at - _EXPIRY_MARGIN_S > time.time():
            return tokens.access_token
        if tokens.refresh_token is None:
            raise SignInRefused("The provider's token of this person has ended, and it gave no refresh token.")
        renewed = await self._renew(tenant, holder, tokens)
        if renewed is None:
            raise Unavailable("the provider cannot be asked for a token of the person now", retry_after_s=5.0)
        return renewed[1].access_token

    async def _renew(
        self, tenant: TenantId, holder: SignedInPerson, tokens: ProviderTokens
    ) -> tuple[SignIn, ProviderTokens] | None:
        """Return refreshed claims and tokens; None if the provider is unavailable, or another replica is refreshing.

        Raises:
            SignInRefused: the provider no longer knows the person; the grants of the sign-in are ended.
        """
        lease = secrets.token_hex(8)
        if not await take_lease(tenant, self._catalog, holder.sign_in.id, lease):
            return None
        with anyio.CancelScope(shield=True):  # a cancellation would lose the new refresh token
            return await self._refresh(tenant, holder, tokens, lease)
        return None

    async def _refresh(
        self, tenant: TenantId, holder: SignedInPerson, tokens: ProviderTokens, lease: str
    ) -> tuple[SignIn, ProviderTokens] | None:
        catalog, sign_in = self._catalog, holder.sign_in
        try:
            secret = await open_client_secret(tenant, catalog, holder.issuer)
            found = await self._provider.refresh(tenant, holder.issuer, secret, tokens, sign_in.claims)
        except TokenRejected as rejected:
            await self._end(tenant, sign_in, f"the provider's ID token is not valid: {rejected.reason}")
        except GatewayError as error:
            if isinstance(error, TokenRefused) and error.error in _ENDED:  # guard: provider-ends-grants
                await self._end(tenant, sign_in, f"the provider refused its refresh token: {error.error}")
            log.warning("provider_refresh_failed", tenant_id=tenant, reason=error.message)
            await end_lease(tenant, catalog, sign_in.id, lease)
            return None
        renewed = replace(sign_in, claims=found.claims, checked_at=datetime.now(UTC))
        await save_provider_tokens(tenant, catalog, renewed, found.tokens, lease=lease)
        return renewed, found.tokens

    async def _end(self, tenant: TenantId, sign_in: SignIn, reason: str) -> Never:
        await end_grants_of(tenant, self._catalog, sign_in, reason)
        raise SignInRefused(_SIGN_IN_AGAIN) from None
