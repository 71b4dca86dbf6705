"""OAuth 2.0 access tokens for upstreams, cached until shortly before they expire.

A token is requested with client credentials (RFC 6749 section 4.4), or in exchange for a caller's token (RFC 8693).

Token requests are single-flight on a replica. With a store, a lock also prevents parallel requests of other replicas;
after a bounded wait a replica requests the token without the lock. The cache key covers tenant, owner and every part of
the token request.
"""

import hashlib
import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Protocol

import anyio

from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.http.plans import SchemeKind, SchemePlan
from gateway.domain.http.requests import AccessToken, Credential
from gateway.domain.identifiers import SourceId, TenantId
from gateway.errors import GatewayError, RedisUnavailable
from gateway.upstream.auth.credentials import Security, choose
from gateway.upstream.auth.limits import EXPIRY_MARGIN_S
from gateway.upstream.auth.token_endpoint import TokenRequest, client_credentials, fetch_token
from gateway.upstream.client import UpstreamClient

_CAPACITY = 4096
_EXPIRY_MARGIN_SHARE = 0.2


class TokenStore(Protocol):
    """Token store shared by the replicas; the tokens are encrypted. Every method may raise RedisUnavailable."""

    async def get(self, tenant: TenantId, name: str) -> AccessToken | None:
        """Return the stored token; None if there is none."""
        ...

    async def put(self, tenant: TenantId, name: str, token: AccessToken) -> None:
        """Store a token until it expires."""
        ...

    async def drop(self, tenant: TenantId, name: str) -> None:
        """Delete a token."""
        ...

    def lock(self, tenant: TenantId, name: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock for a token request while the block runs.

        After a bounded wait, the block runs without the lock.
        """
        ...


class _Fetch:
    """One token request in flight: the first caller sends the request, the others wait for its outcome."""

    __slots__ = ("done", "error")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.error: GatewayError | None = None


class Tokens:
    """Obtains access tokens, and caches them on this replica."""

    def __init__(self, upstream: UpstreamClient, store: TokenStore | None = None) -> None:
        self._upstream = upstream
        self._store = store
        self._held = FairCache[str, AccessToken](_CAPACITY)
        self._flights: dict[tuple[TenantId, str], _Fetch] = {}

    async def exchange(
        self, tenant: TenantId, source: SourceId, security: Security, stored: Mapping[str, Credential]
    ) -> Mapping[str, Credential]:
        """Return the stored credentials, with the required client secrets replaced by access tokens.

        Raises:
            TokenRefused: the token endpoint issued no token.
            UpstreamError: the request to the token endpoint failed.
        """
        wanted = [scheme for scheme in choose(security, stored) or () if needs_token(scheme, stored)]
        if not wanted:
            return stored
        fetched = {
            scheme.name: await self.obtain(tenant, source, client_credentials(scheme, stored[scheme.name]))
            for scheme in wanted
        }
        return {**stored, **{name: Credential(value=token.value) for name, token in fetched.items()}}

    async def forget(
        self,
        tenant: TenantId,
        source: SourceId,
        security: Security,
        stored: Mapping[str, Credential],
        *,
        refused: Mapping[str, Credential] | None = None,
    ) -> None:
        """Drop the tokens of a request that the upstream rejected.

        `refused` are the credentials that were sent: a newer token, fetched by a concurrent call, is kept. While Redis
        is unavailable, only the cached token of this replica is dropped.
        """
        for scheme in choose(security, stored) or ():
            if needs_token(scheme, stored):
                old = refused.get(scheme.name) if refused is not None else None
                wanted = client_credentials(scheme, stored[scheme.name])
                await self.drop(tenant, source, wanted, None if old is None else old.value)

    async def drop(self, tenant: TenantId, owner: str, wanted: TokenRequest, value: str | None) -> None:
        """Drop the cached token of this request if it has this value; with None, drop it unconditionally."""
        name = _token_name(owner, wanted)
        held = self._held.get(tenant, name)
        if held is not None and value in {None, held.value}:
            self._held.drop(tenant, name)
        if self._store is None:
            return
        with suppress(RedisUnavailable):
            kept = None if value is None else await self._store.get(tenant, name)
            if kept is None or kept.value == value:
                await self._store.drop(tenant, name)

    async def obtain(self, tenant: TenantId, owner: str, wanted: TokenRequest) -> AccessToken:
        """Return the token of this request; `owner` is the source or the credential that uses it.

        Raises:
            TokenRefused: the token endpoint issued no token.
            UpstreamError: the request to the token endpoint failed.
        """
        name = _token_name(owner, wanted)
        while True:
            held = self._held.get(tenant, name)
            if held is not None and _is_fresh(held):
                return held
            flight = self._flights.get((tenant, name))
            if flight is None:
                return await self._lead(tenant, name, wanted)
            await flight.done.wait()
            if flight.error is not None:
                # A copy for each waiter: one exception object would collect the tracebacks of all.
                raise type(flight.error)(flight.error.message)

    async def _lead(self, tenant: TenantId, name: str, wanted: TokenRequest) -> AccessToken:
        flight = self._flights[tenant, name] = _Fetch()
        try:
            token = await self._obtain(tenant, name, wanted)
        except GatewayError as error:
            flight.error = error
            raise
        finally:
            # Removed before the waiters wake: those without a token then begin the next fetch.
            del self._flights[tenant, name]
            flight.done.set()
        self._held.put(tenant, name, token)
        return token

    async def _obtain(self, tenant: TenantId, name: str, wanted: TokenRequest) -> AccessToken:
        if self._store is None:
            return await fetch_token(self._upstream, tenant, wanted)
        try:
            return await self._obtain_shared(self._store, tenant, name, wanted)
        except RedisUnavailable:
            return await fetch_token(self._upstream, tenant, wanted)

    async def _obtain_shared(self, store: TokenStore, tenant: TenantId, name: str, wanted: TokenRequest) -> AccessToken:
        found = await store.get(tenant, name)
        if found is not None and _is_fresh(found):
            return found
        async with store.lock(tenant, name):
            # Read again under the lock: another replica may have fetched it while this one waited.
            found = await store.get(tenant, name)
            if found is not None and _is_fresh(found):
                return found
            token = await fetch_token(self._upstream, tenant, wanted)
            await store.put(tenant, name, token)
            return token


def needs_token(scheme: SchemePlan, stored: Mapping[str, Credential]) -> bool:
    """True if the stored credential is a client id and secret; without a client id, the value is already a token."""
    return scheme.kind is SchemeKind.CLIENT_CREDENTIALS and stored[scheme.name].username is not None


def _token_name(owner: str, wanted: TokenRequest) -> str:
    fields = (part for pair in wanted.fields for part in pair)
    parts = (owner, wanted.label, wanted.url, wanted.client.username or "", wanted.client.value, *fields)
    digest = hashlib.blake2b(digest_size=32)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(4, "big") + encoded)
    return digest.hexdigest()


def _is_fresh(token: AccessToken) -> bool:
    """True if more than 30 seconds remain; for a lifetime below 150 seconds, more than 20 % of it."""
    left = token.expires_at - time.time()
    return left > min(EXPIRY_MARGIN_S, token.life_s * _EXPIRY_MARGIN_SHARE)
