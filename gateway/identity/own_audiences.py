"""Audiences at which the gateway accepts access tokens: no upstream may receive a caller's token for one of them.

The claims of a JWT are read without verification. The audiences of an opaque token are known from its introspection.
Only the issuer that issued it is asked, so no issuer receives a token of another server.
"""

import time
from urllib.parse import urlsplit

from gateway.domain.credentials import AccountTerms, TokenExchange
from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DatabaseUnavailable
from gateway.identity.access_tokens import audiences_of, is_jwt
from gateway.identity.introspection import Introspection
from gateway.identity.limits import FRESH_ISSUERS_S
from gateway.identity.people import IssuerDirectory, is_resource_path

_CACHED_TENANTS = 10_000
_CACHED_TOKENS = 1000
"""Limit on tokens whose audiences are cached: reading the claims of one costs about 100 µs, a fifth of a call."""


class OwnAudiences:
    """Implementation of `gateway.upstream.auth.delegation.TokenAudiences`: URLs, and audiences of issuers."""

    def __init__(
        self, directory: IssuerDirectory, introspection: Introspection | None = None, *, public_url: str | None
    ) -> None:
        self._directory = directory
        self._introspection = introspection
        self._host = None if public_url is None else urlsplit(public_url).netloc.lower()
        self._audiences = BoundedCache[str, frozenset[str]](_CACHED_TOKENS)
        self._cached = BoundedCache[TenantId, tuple[float, tuple[Issuer, ...]]](_CACHED_TENANTS)

    async def include(self, principal: Principal, text: str) -> bool:
        """True for a URL of the gateway, a further audience of the tenant's issuers, and a JWT for one of these.

        Raises:
            DatabaseUnavailable: the tenant's issuers cannot be read now, and were not read before.
        """
        audiences = self._audiences.get(text)
        if audiences is None:
            audiences = self._audiences[text] = audiences_of(text) | {text}
        return await self._has_own(principal, audiences)

    async def accept_opaque(self, principal: Principal, token: str, terms: TokenExchange | AccountTerms) -> bool:
        """True if the gateway accepts an opaque token that a server issued under these terms.

        Raises:
            Unavailable: the issuers cannot be read, or the issuer that issued the token cannot introspect it now.
        """
        if self._introspection is None or is_jwt(token):
            return False
        issuers = await self._issuers_of(principal)
        issuer = next((each for each in issuers if each.introspects("opaque")), None)
        if issuer is None or not _is_issued_by(issuer, terms):  # guard: opaque-token-of-its-issuer
            return False
        audiences = await self._introspection.audiences_of(principal.tenant, issuer, token)
        return await self._has_own(principal, audiences)

    async def _has_own(self, principal: Principal, audiences: frozenset[str]) -> bool:
        if any(self._is_own_url(each) for each in audiences):  # guard: own-audience-urls
            return True
        further = {one for issuer in await self._issuers_of(principal) for one in issuer.audiences}
        return not audiences.isdisjoint(further)

    def _is_own_url(self, text: str) -> bool:
        """True for a URL of the gateway's public host; without a public URL, for a resource's path on any host."""
        try:
            parts = urlsplit(text)
        except ValueError:
            return False
        return is_resource_path(parts.path) if self._host is None else parts.netloc.lower() == self._host

    async def _issuers_of(self, principal: Principal) -> tuple[Issuer, ...]:
        """Return a tenant's issuers; the last known ones while the database is unavailable."""
        until, known = self._cached.get(principal.tenant, (0.0, None))
        if known is not None and until > time.monotonic():
            return known
        try:
            found = await self._directory.issuers_of(principal.slug)
        except DatabaseUnavailable:
            if known is None:
                raise
            return known
        issuers = found.issuers if found else ()
        self._cached[principal.tenant] = time.monotonic() + FRESH_ISSUERS_S, issuers
        return issuers


def _is_issued_by(issuer: Issuer, terms: TokenExchange | AccountTerms) -> bool:
    """True if a token that was issued under these terms may be a token of the issuer, and may be sent to it."""
    if isinstance(terms, TokenExchange):
        return terms.issuer == issuer.id
    client = issuer.introspection
    return client is not None and urlsplit(client.url)[:2] == urlsplit(terms.token_url)[:2]
