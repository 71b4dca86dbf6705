"""Rechecks of stored sign-ins: refreshed claims and groups, and tokens of the provider.

With a refresh token of the provider, claims older than five minutes are refreshed; while the provider is unavailable,
they remain valid for an hour. Without one, or if the provider sends no claims with its new tokens, a sign-in is valid
for the time that the issuer's client permits.

A lease gives the refresh token to one request at a time, because providers treat a second use as theft; others wait for
it. New tokens are stored also if the new claims cannot be read.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Never

import anyio
import structlog

from gateway.catalog.identity.client_secrets import open_client_secret
from gateway.catalog.identity.grants import end_grants_of
from gateway.catalog.identity.sign_ins import (
    end_lease,
    open_sign_in,
    save_provider_tokens,
    take_lease,
)
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.sign_ins import ProviderTokens, SignedInPerson, SignIn
from gateway.errors import GatewayError, TokenRefused, Unavailable
from gateway.identity.access_tokens import TokenRejected
from gateway.identity.oauth.limits import EXPIRY_MARGIN_S, LEASE_PAUSE_S
from gateway.identity.oauth.relying_party import ClaimsState, RelyingParty, client_of

log = structlog.get_logger(__name__)

FRESH = timedelta(minutes=5)
"""Age up to which claims and tokens are used without a refresh."""
STALE = timedelta(hours=1)
"""Age up to which they are used while the provider is unavailable."""
_LEASE_TRIES = 20
_ENDED = frozenset({"invalid_grant", "access_denied"})
_SIGN_IN_AGAIN = "The provider does not know this sign-in any more; sign in again."
_Stored = tuple[SignIn, ProviderTokens]


class ProviderChecks:
    """Refreshes the claims and tokens of sign-ins."""

    def __init__(self, catalog: CatalogContext, provider: RelyingParty) -> None:
        self._catalog = catalog
        self._provider = provider

    async def check(
        self, tenant: TenantId, holder: SignedInPerson, *, within: timedelta = FRESH, unasked: timedelta = STALE
    ) -> SignedInPerson:
        """Return the holder with valid claims; with a refresh token, the claims are at most `within` old.

        While the provider is unavailable, they may be as old as `unasked`.

        Raises:
            SignInRefused: the provider no longer knows the person, or the sign-in is too old.
            Unavailable: the provider is unavailable, and the claims are too old.
        """
        sign_in, now = holder.sign_in, datetime.now(UTC)
        if now - sign_in.checked_at <= within:
            return holder
        _, tokens = await self._open(tenant, sign_in)
        if tokens.refresh_token is None:
            return _limit_age(holder, now)
        renewed = await self._renew(tenant, holder, lambda stored: now - stored[0].checked_at <= within)
        if renewed is not None:
            return _limit_age(replace(holder, sign_in=renewed[0]), now)
        if now - sign_in.checked_at > unasked:  # guard: sign-in-stale
            raise Unavailable("the provider cannot be asked about the person now; retry later", retry_after_s=5.0)
        return holder

    async def subject_token(self, tenant: TenantId, holder: SignedInPerson) -> str:
        """Return a valid access token of the provider, which is sent only to the provider's own token endpoint.

        Raises:
            SignInRefused: the provider no longer knows the person, or issued no refresh token.
            Unavailable: the provider is unavailable.
        """
        stored = await self._open(tenant, holder.sign_in)
        _, tokens = stored
        if _has_valid_token(stored):
            return tokens.access_token
        if tokens.refresh_token is None:
            raise SignInRefused("The provider's token of this person has ended, and it gave no refresh token.")
        renewed = await self._renew(tenant, holder, _has_valid_token)
        if renewed is None:
            renewed = await self._open(tenant, holder.sign_in)  # with new tokens, if only the claims are unavailable
            if not _has_valid_token(renewed):
                raise Unavailable("the provider cannot be asked for a token of the person now", retry_after_s=5.0)
        return renewed[1].access_token

    async def _open(self, tenant: TenantId, sign_in: SignIn) -> _Stored:
        stored = await open_sign_in(tenant, self._catalog, sign_in.id)
        if stored is None:
            raise SignInRefused(_SIGN_IN_AGAIN)
        return stored

    async def _renew(
        self, tenant: TenantId, holder: SignedInPerson, is_renewed: Callable[[_Stored], bool]
    ) -> _Stored | None:
        """Return refreshed claims and tokens; None if claims are unavailable, or another request holds the lease.

        Raises:
            SignInRefused: the provider no longer knows the person; the grants of the sign-in are ended.
        """
        lease = secrets.token_hex(8)
        for _ in range(_LEASE_TRIES):
            if not await take_lease(tenant, self._catalog, holder.sign_in.id, lease):
                await anyio.sleep(LEASE_PAUSE_S)
                continue
            with anyio.CancelScope(shield=True):  # a token that the provider has replaced must be stored
                stored = await self._open(tenant, holder.sign_in)  # the last holder of the lease may have renewed it
                if not is_renewed(stored):
                    return await self._refresh(tenant, holder, stored, lease)
                await end_lease(tenant, self._catalog, holder.sign_in.id, lease)
                return stored
        return None

    async def _refresh(self, tenant: TenantId, holder: SignedInPerson, stored: _Stored, lease: str) -> _Stored | None:
        catalog, (sign_in, tokens), asked_at = self._catalog, stored, datetime.now(UTC)
        try:
            secret = await open_client_secret(tenant, catalog, holder.issuer)
            found = await self._provider.refresh(tenant, holder.issuer, secret, tokens, before=sign_in.claims)
        except TokenRejected as rejected:
            await self._end(tenant, sign_in, f"the provider's ID token is not valid: {rejected.reason}")
        except GatewayError as error:
            if isinstance(error, TokenRefused) and error.error in _ENDED:  # guard: provider-ends-grants
                await self._end(tenant, sign_in, f"the provider refused its refresh token: {error.error}")
            await end_lease(tenant, catalog, sign_in.id, lease)
            log.warning("provider_refresh_failed", tenant_id=tenant, reason=error.message)
            return None
        # guard: refresh-unchecked
        checked_at = asked_at if found.state is ClaimsState.CURRENT else sign_in.checked_at
        renewed = replace(sign_in, claims=found.claims, checked_at=checked_at)
        await save_provider_tokens(tenant, catalog, renewed, found.tokens, lease=lease)
        if found.state is not ClaimsState.CURRENT:
            log.warning("provider_claims_missing", tenant_id=tenant, state=found.state.value)
        return None if found.state is ClaimsState.UNAVAILABLE else (renewed, found.tokens)

    async def _end(self, tenant: TenantId, sign_in: SignIn, reason: str) -> Never:
        await end_grants_of(tenant, self._catalog, sign_in, reason)
        raise SignInRefused(_SIGN_IN_AGAIN) from None


def _limit_age(holder: SignedInPerson, now: datetime) -> SignedInPerson:
    """Return the holder, unless its claims are older than those of a sign-in without newer ones may be."""
    max_age = timedelta(seconds=client_of(holder.issuer).max_unchecked_s)
    if now - holder.sign_in.checked_at > max_age:  # guard: sign-in-unchecked
        raise SignInRefused("The sign-in is too old, and the provider sends no newer claims; sign in again.")
    return holder


def _has_valid_token(stored: _Stored) -> bool:
    return stored[1].access_ends_at - EXPIRY_MARGIN_S > time.time()
