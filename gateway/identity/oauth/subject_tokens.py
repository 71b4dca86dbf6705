"""Provider tokens of people whose access token the gateway issued, used as subject tokens of token exchange.

A grant stores the provider's tokens encrypted, and `ProviderChecks` refreshes them. A decrypted token is cached for 20
seconds, which is less than its minimum remaining validity.
"""

import time

from gateway.catalog.identity.grants import find_grant, find_holder
from gateway.catalog.transaction import CatalogContext
from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.identifiers import is_grant_id
from gateway.domain.refusals import SignInRefused
from gateway.domain.tenancy.grants import GrantState
from gateway.domain.tenancy.principals import InboundToken, Principal
from gateway.errors import CredentialMissing
from gateway.identity.oauth.limits import SUBJECT_TOKEN_CACHE_S
from gateway.identity.oauth.provider_checks import ProviderChecks
from gateway.identity.people import IssuerDirectory

_CAPACITY = 4096


class SubjectTokens:
    """Finds the subject token of a caller."""

    def __init__(self, catalog: CatalogContext, directory: IssuerDirectory, checks: ProviderChecks) -> None:
        self._catalog = catalog
        self._directory = directory
        self._checks = checks
        self._held = FairCache[str, tuple[float, InboundToken]](_CAPACITY)

    async def find(self, principal: Principal) -> InboundToken | None:
        """Return the caller's own token, or the provider token of the caller's grant; None for a key.

        Raises:
            CredentialMissing: the grant has ended, or the provider no longer issues tokens for the person.
            Unavailable: the provider is unavailable.
        """
        if principal.token is not None or not is_grant_id(principal.key):
            return principal.token
        held = self._held.get(principal.tenant, principal.key)
        if held is None or held[0] <= time.monotonic():
            held = time.monotonic() + SUBJECT_TOKEN_CACHE_S, await self._open(principal)
            self._held.put(principal.tenant, principal.key, held)
        return held[1]

    async def _open(self, principal: Principal) -> InboundToken:
        tenant = principal.tenant
        issuers = await self._directory.issuers_of(principal.slug)
        found = await find_grant(tenant, self._catalog, principal.key)
        if issuers is None or found is None or found[0].state is not GrantState.ACTIVE:  # guard: subject-token-grant
            raise CredentialMissing("The grant of the caller has ended; the client has to sign in again.")
        try:
            holder = await find_holder(tenant, self._catalog, issuers, found[0])
            return InboundToken(holder.issuer.id, await self._checks.subject_token(tenant, holder))
        except SignInRefused as refused:
            raise CredentialMissing(f"There is no token of the provider to exchange. {refused.message}") from None
