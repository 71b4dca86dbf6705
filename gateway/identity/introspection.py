"""Token introspection (RFC 7662) of opaque tokens, and of verified JWTs if the issuer is configured for it.

An active result is cached for the configured time, at most a minute and never beyond the token's expiry. An inactive
result is cached for three seconds. A client secret from an external store is cached for 15 s, and read again at once if
the endpoint refuses it. Requests are single-flight per token, four at a time per issuer. Verified JWTs and
recently active tokens have slots and limits of their own, so a flood of invented tokens does not delay them. If the
endpoint is unavailable, the token is refused.

Signed JWT responses (RFC 9701) are not requested, because the endpoint belongs to the issuer and requires TLS.
"""

import hashlib
import math
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import anyio
import jwt
import msgspec
import structlog
from jwt.utils import base64url_encode

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.fair_cache import FairCache
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import IssuerId, TenantId
from gateway.domain.json_text import decode_object
from gateway.domain.refusals import SecretUnavailable
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer, TenantIssuers
from gateway.domain.tenancy.keys import KEY_PREFIX
from gateway.errors import GatewayError, LimitExceeded, Unavailable
from gateway.identity.access_tokens import (
    BROKEN,
    TokenRejected,
    VerifiedToken,
    claimed_audiences,
    is_jwt,
    token_of,
    verify_claims,
)
from gateway.identity.limits import (
    INACTIVE_S,
    INTROSPECTION_BURST_S,
    INTROSPECTION_ENTRY_BYTES,
    INTROSPECTION_RETRY_S,
    INTROSPECTION_S,
    LOG_EVERY_S,
    MAX_ACTIVE_BYTES,
    MAX_INACTIVE,
    MAX_INTROSPECTED_ISSUERS,
    MAX_WAITING_LOOKUPS,
    SECRET_RETRY_S,
    SECRET_S,
)
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.identity.single_flight import SingleFlight
from gateway.upstream.auth.token_endpoint import introspect_token, token_introspection
from gateway.upstream.client import UpstreamClient

log = structlog.get_logger(__name__)

OpenSecret = Callable[[TenantId, Issuer], Awaitable[str]]
_Limits = tuple[tuple[TokenBuckets, str], ...]
"""The buckets of inactive tokens from which one token takes, each with its name there."""

_OPAQUE_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{8,4096}=*")
"""Opaque tokens (RFC 6750 section 2.1)."""
_KEY_FORM = re.compile(rf"{KEY_PREFIX}|gwop_|_[0-9a-z]{{20}}_[0-9a-z-]{{20}}", re.IGNORECASE)
"""Parts of the gateway's keys, including mistyped ones, which must never be sent to an issuer."""
_KINDS: Mapping[str, frozenset[str]] = {
    "token_type": frozenset({"bearer", "dpop", "access_token"}),
    "token_use": frozenset({"access_token", "access"}),
    "typ": frozenset({"bearer", "dpop", "jwt", "at+jwt"}),
}
"""Response members that state the kind of a token, with the values that access tokens have."""
_FAILURES_EACH = 5.0
_FAILURES_ALL = 20.0


@dataclass(frozen=True, slots=True)
class _TokenState:
    """The response members of an active token as JSON, and the end of their validity."""

    members: bytes
    until: float


@dataclass(slots=True)
class _ClientSecret:
    """The secret of the gateway's client, or the failed read; valid for a limited time with an external store."""

    value: str | SecretUnavailable = field(repr=False)
    read_at: float
    until: float


class _Flights:
    """The requests to one issuer, with separate slots for recently active tokens and for other tokens."""

    def __init__(self) -> None:
        self.known = SingleFlight[bytes, _TokenState | None](Unavailable)
        self.unknown = SingleFlight[bytes, _TokenState | None](Unavailable)


class Introspection:
    """Introspection client with a cache of token states on this replica."""

    def __init__(self, upstream: UpstreamClient, open_secret: OpenSecret) -> None:
        self._upstream = upstream
        self._open_secret = open_secret
        self._cache_secret = secrets.token_bytes(32)
        self._active = FairCache[bytes, _TokenState](MAX_ACTIVE_BYTES)
        self._inactive = FairCache[bytes, float](MAX_INACTIVE)
        self._flights = BoundedCache[IssuerId, _Flights](MAX_INTROSPECTED_ISSUERS)
        self._secrets = BoundedCache[tuple[IssuerId, int], _ClientSecret](MAX_INTROSPECTED_ISSUERS)
        self._each = TokenBuckets(rate=_FAILURES_EACH, burst=_FAILURES_EACH * INTROSPECTION_BURST_S)
        self._all = TokenBuckets(rate=_FAILURES_ALL, burst=_FAILURES_ALL * INTROSPECTION_BURST_S)
        self._lines = TokenBuckets(rate=1 / LOG_EVERY_S, burst=1)

    async def verify(self, text: str, found: TenantIssuers, *, audience: str, client: str) -> VerifiedToken:
        """Introspect an opaque token for this audience, and return its contents; `client` is the network of the caller.

        Raises:
            TokenRejected: no issuer introspects opaque tokens, or the token is inactive or for another audience.
            LimitExceeded: too many invalid tokens came from this network, or to this tenant.
            Unavailable: the issuer's endpoint is unavailable.
        """
        issuer = next((each for each in found.issuers if each.introspects("opaque")), None)
        if issuer is None or _OPAQUE_TOKEN.fullmatch(text) is None:
            raise TokenRejected("form")
        if _KEY_FORM.search(text) is not None:  # guard: introspection-no-keys
            raise TokenRejected("form")
        limits = (self._each, f"{found.tenant} {client}"), (self._all, found.tenant)
        answer = await self._find(found.tenant, issuer, text, limits, is_invented=True)
        claims = _check(answer, issuer, (audience, *issuer.audiences))
        return replace(token_of(claims, issuer), fresh_s=answer.until - time.monotonic())

    async def confirm(self, tenant: TenantId, text: str, token: VerifiedToken) -> VerifiedToken:
        """Return a verified JWT if its issuer needs no introspection, or reports the token as active.

        Invented tokens cannot delay it: its signature is valid, so only tokens of its own subject share its limit.

        Raises:
            TokenRejected: the token is no longer active.
            LimitExceeded: too many inactive tokens of this subject were sent.
            Unavailable: as for opaque tokens.
        """
        if not token.issuer.introspects("jwt"):
            return token
        limits = ((self._each, f"{token.issuer.id} {token.person.subject}"),)  # guard: introspection-verified-apart
        answer = await self._find(tenant, token.issuer, text, limits)
        return replace(token, fresh_s=answer.until - time.monotonic())

    async def is_active(self, tenant: TenantId, issuer: Issuer, text: str) -> bool:
        """True if an accepted token needs no introspection, or the issuer reports it as active."""
        is_opaque = not is_jwt(text)
        if not issuer.introspects("opaque" if is_opaque else "jwt"):
            return not is_opaque
        try:
            await self._find(tenant, issuer, text, ())
        except (TokenRejected, GatewayError):
            return False  # guard: introspection-streams
        return True

    async def audiences_of(self, tenant: TenantId, issuer: Issuer, text: str) -> frozenset[str]:
        """The audiences of an active opaque token of this issuer; none for a token that the gateway does not accept.

        Raises:
            Unavailable: the issuer's endpoint is unavailable.
        """
        if _OPAQUE_TOKEN.fullmatch(text) is None or _KEY_FORM.search(text) is not None:
            return frozenset()
        try:
            state = await self._find(tenant, issuer, text, ())
        except TokenRejected:
            return frozenset()
        return claimed_audiences(decode_object(state.members))

    async def _find(
        self, tenant: TenantId, issuer: Issuer, text: str, limits: _Limits, *, is_invented: bool = False
    ) -> _TokenState:
        """Return the state of an active token. The limits apply to a token that was not active lately.

        `is_invented` is True for tokens without a verified signature; they wait in slots of their own.
        """
        mark, now = self._cache_key(issuer, text), time.monotonic()
        held = self._active.get(tenant, mark)
        if held is not None and held.until > now:
            return held
        if (self._inactive.get(tenant, mark) or 0.0) > now:  # guard: introspection-inactive-cached
            raise TokenRejected("inactive", issuer)
        flights = self._flights.setdefault(issuer.id, _Flights())
        turns = flights.unknown if held is None and is_invented else flights.known  # guard: introspection-known-first
        if turns.waiting >= MAX_WAITING_LOOKUPS:  # guard: introspection-waiting
            raise Unavailable("too many requests wait for an answer of the issuer", retry_after_s=1.0)
        answer = await turns.take(mark, partial(self._ask, tenant, issuer, text, limits if held is None else ()))
        if answer is None:
            raise TokenRejected("inactive", issuer)
        return answer

    async def _ask(self, tenant: TenantId, issuer: Issuer, text: str, limits: _Limits) -> _TokenState | None:
        """Send the introspection request; an inactive token counts in each of the limits."""
        _check_rate(limits)  # repeated, because failures may have been counted during the wait
        mark, client, asked_at = self._cache_key(issuer, text), _client_of(issuer), time.monotonic()
        try:
            with anyio.fail_after(INTROSPECTION_S):
                secret = await self._secret_of(tenant, issuer)
                credential = Credential(username=client.client_id, value=secret)
                wanted = token_introspection(issuer.name, client.url, credential, text)
                members = await introspect_token(self._upstream, tenant, wanted, in_body=client.client_auth == "post")
        except (GatewayError, TimeoutError) as error:
            self._expire_secret(issuer)
            if not self._lines.take(issuer.id):
                reason = error.message if isinstance(error, GatewayError) else "no answer in time"
                log.warning("introspection_failed", tenant_id=tenant, issuer=issuer.name, reason=reason)
            raise Unavailable(  # guard: introspection-closed
                "the issuer of this access token cannot be asked about it now; retry later",
                retry_after_s=INTROSPECTION_RETRY_S,
            ) from None
        if members is None:
            self._active.drop(tenant, mark)
            self._inactive.put(tenant, mark, time.monotonic() + INACTIVE_S)
            for buckets, name in limits:
                buckets.take(name)
            return None
        answer = _TokenState(msgspec.json.encode(members), asked_at + _lifetime_of(members, client))
        self._active.put(tenant, mark, answer, len(answer.members) + INTROSPECTION_ENTRY_BYTES)
        return answer

    async def _secret_of(self, tenant: TenantId, issuer: Issuer) -> str:
        key, read_at = (issuer.id, issuer.version), time.monotonic()
        found = self._secrets.get(key)
        if found is None or found.until <= read_at:
            is_external = _client_of(issuer).client_secret_reference is not None
            try:
                until = read_at + SECRET_S if is_external else math.inf
                found = _ClientSecret(await self._open_secret(tenant, issuer), read_at, until)
            except SecretUnavailable as error:
                ends_at = time.monotonic() + SECRET_RETRY_S  # guard: introspection-secret-failures
                found = _ClientSecret(error, read_at, ends_at)
            self._secrets[key] = found
        if isinstance(found.value, SecretUnavailable):
            raise found.value.with_traceback(None)
        return found.value

    def _expire_secret(self, issuer: Issuer) -> None:
        """Read the secret of a reference again at the next request, but not more than once per second."""
        found = self._secrets.get((issuer.id, issuer.version))
        if found is not None and isinstance(found.value, str) and found.until < math.inf:
            found.until = found.read_at + SECRET_RETRY_S

    def _cache_key(self, issuer: Issuer, text: str) -> bytes:
        """Return the cache key of a token, which includes the issuer's settings."""
        named = f"{issuer.id} {issuer.version} {text}".encode("utf-8", "replace")
        return hashlib.blake2b(named, key=self._cache_secret, digest_size=16).digest()


def _check_rate(limits: _Limits) -> None:
    wait_s = max((buckets.wait_for(name) for buckets, name in limits), default=0.0)
    if wait_s > 0:  # guard: introspection-rate
        text = "too many invalid access tokens for this tenant; retry later, with a valid one"
        raise LimitExceeded(text, retry_after_s=max(1.0, wait_s))


def _client_of(issuer: Issuer) -> IntrospectionClient:
    client = issuer.introspection
    assert client is not None  # callers have checked it
    return client


def _lifetime_of(members: Mapping[str, Any], client: IntrospectionClient) -> float:
    """Return the seconds for which an active result is valid."""
    end, now = members.get("exp"), time.time()
    if isinstance(end, int | float):
        return max(0.0, min(max(end, 0), now + client.cache_s) - now)  # guard: introspection-end
    return float(client.cache_s)


def _check(answer: _TokenState, issuer: Issuer, audiences: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the claims of an active token, validated like those of a JWT.

    The claims are signed with a temporary key, so that the verification of JWTs applies to them.
    """
    try:
        members = decode_object(answer.members)
        for name, kinds in _KINDS.items():
            if name in members and str(members[name]).lower() not in kinds:  # guard: introspection-kind
                raise TokenRejected("type", issuer)
        key = secrets.token_bytes(32)
        signed = jwt.encode({"iss": issuer.url, **members}, key, algorithm="HS256")
    except (*BROKEN, msgspec.MsgspecError):
        raise TokenRejected("form", issuer) from None
    return verify_claims(
        signed, jwt.PyJWK({"kty": "oct", "k": _encode_octets(key)}, algorithm="HS256"), issuer, audiences
    )


def _encode_octets(key: bytes) -> str:
    return base64url_encode(key).decode()
