"""Audiences at which the gateway accepts access tokens: no upstream may receive a caller's token for one of them.

The claims of a JWT are read without verification. An opaque token names no audience, so it is not recognised.
"""

import time
from urllib.parse import urlsplit

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.tenancy.principals import Principal
from gateway.errors import DatabaseUnavailable
from gateway.identity.access_tokens import audiences_of
from gateway.identity.people import IssuerDirectory, is_resource_path

_FRESH_S = 1.5
_CACHED_SLUGS = 10_000
_CACHED_TOKENS = 1000
"""Limit on tokens whose audiences are cached: reading the claims of one costs about 100 µs, a fifth of a call."""


class OwnAudiences:
    """Implementation of `gateway.upstream.auth.delegation.TokenAudiences`: URLs, and audiences of issuers."""

    def __init__(self, directory: IssuerDirectory, *, public_url: str | None) -> None:
        self._directory = directory
        self._host = None if public_url is None else urlsplit(public_url).netloc.lower()
        self._audiences = BoundedCache[str, frozenset[str]](_CACHED_TOKENS)
        self._cached = BoundedCache[str, tuple[float, frozenset[str]]](_CACHED_SLUGS)

    async def include(self, principal: Principal, text: str) -> bool:
        """True for a URL of the gateway, a further audience of the tenant's issuers, and a JWT for one of these.

        Raises:
            DatabaseUnavailable: the tenant's issuers cannot be read now, and were not read before.
        """
        audiences = self._audiences.get(text)
        if audiences is None:
            audiences = self._audiences[text] = audiences_of(text) | {text}
        if any(self._is_own_url(each) for each in audiences):  # guard: own-audience-urls
            return True
        return not audiences.isdisjoint(await self._further_audiences(principal.slug))

    def _is_own_url(self, text: str) -> bool:
        """True for a URL of the gateway's public host; without a public URL, for a resource's path on any host."""
        try:
            parts = urlsplit(text)
        except ValueError:
            return False
        return is_resource_path(parts.path) if self._host is None else parts.netloc.lower() == self._host

    async def _further_audiences(self, slug: str) -> frozenset[str]:
        """Return the further audiences of a tenant's issuers; the last known ones while the database is unavailable."""
        until, known = self._cached.get(slug, (0.0, None))
        if known is not None and until > time.monotonic():
            return known
        try:
            found = await self._directory.issuers_of(slug)
        except DatabaseUnavailable:
            if known is None:
                raise
            return known
        audiences = frozenset(one for each in (found.issuers if found else ()) for one in each.audiences)
        self._cached[slug] = time.monotonic() + _FRESH_S, audiences
        return audiences
