"""Verification of JWTs (RFC 7519) that an issuer of the tenant signed.

Access tokens are for one resource (RFC 9068), ID tokens for the gateway's client at the issuer (OpenID Connect Core 1.0
section 3.1.3.7).

PyJWT verifies signature and registered claims. This module selects issuer, algorithms, keys and audience, limits the
lifetime, and identifies the person.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol, cast

import jwt
import msgspec
from jwt.utils import from_base64url_uint

from gateway.domain.identifiers import TenantId
from gateway.domain.json_access import unescape_token
from gateway.domain.json_text import decode_json
from gateway.domain.tenancy.issuers import ALGORITHMS, IdentityClaims, Issuer, TenantIssuers, is_subject
from gateway.identity.limits import (
    CLOCK_SKEW_S,
    MAX_CACHED_KEY_BYTES,
    MAX_CACHED_KEYS,
    MAX_CLAIMED_GROUPS,
    MAX_RSA_BITS,
    MAX_RSA_EXPONENT,
    MAX_TOKEN_HEADER_BYTES,
    MIN_RSA_BITS,
)

_TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
_ID_TOKEN_TYPES = frozenset({"jwt", "id_token+jwt", "application/id_token+jwt"})
_REQUIRED = ("iss", "sub", "aud", "exp", "iat")
BROKEN = (jwt.PyJWTError, ValueError, TypeError, KeyError, RecursionError, OverflowError, AttributeError)
"""Errors of PyJWT for invalid tokens, including those that malformed values cause."""


class TokenRejected(Exception):
    """The token is invalid. `reason` is for the tenant's audit trail and never sent to the client."""

    def __init__(self, reason: str, issuer: Issuer | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.issuer = issuer


class KeySource(Protocol):
    """The signing keys of issuers."""

    async def find(
        self, tenant: TenantId, url: str, kid: str | None, *, state: str = ""
    ) -> Sequence[Mapping[str, Any]]:
        """Return the JWKs with this id, or all JWKs without an id; raises `Unavailable` if the fetch fails.

        `state` is that of the issuer: a set that was fetched for another state is not used.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedToken:
    """The contents of a verified token."""

    issuer: Issuer
    person: IdentityClaims
    expires_at: datetime
    fresh_s: float = math.inf
    """Seconds for which the result of an introspection is valid."""
    thumbprint: str | None = None
    """Thumbprint of the client key to which the token is bound (`cnf.jkt`, RFC 9449 section 6.1)."""
    audiences: frozenset[str] = frozenset()
    """All audiences of the token."""


async def verify(text: str, found: TenantIssuers, keys: KeySource, *, audience: str) -> VerifiedToken:
    """Verify a JWT for this audience, and return its contents.

    Raises:
        TokenRejected: the token is invalid, or for another audience.
        Unavailable: the issuer's keys cannot be fetched now.
    """
    header, claims = _read_unverified(text)
    issuer = next((each for each in found.issuers if each.url == claims.get("iss")), None)  # guard: token-issuer
    if issuer is None:
        raise TokenRejected("issuer")
    if str(header.get("typ", "jwt")).lower() not in _TYPES:  # guard: token-type
        raise TokenRejected("type", issuer)
    key = await _find_key(found.tenant, issuer, header, keys)
    return token_of(verify_claims(text, key, issuer, (audience, *issuer.audiences)), issuer)


def token_of(claims: Mapping[str, Any], issuer: Issuer) -> VerifiedToken:
    """Return the contents of a token with these claims.

    Raises:
        TokenRejected: the kind of binding is not supported, or the subject or the lifetime is invalid.
    """
    scopes = texts_of(claims.get("scope")) | texts_of(claims.get("scp"))
    return VerifiedToken(
        issuer=issuer,
        person=read_person(claims, issuer, scopes),
        expires_at=_expiry_of(claims, issuer),
        thumbprint=_thumbprint_of(claims, issuer),
        audiences=texts_of(claims.get("aud")),
    )


def _thumbprint_of(claims: Mapping[str, Any], issuer: Issuer) -> str | None:
    """Return the thumbprint of the key to which a token is bound; None for a bearer token."""
    if "cnf" not in claims:
        return None
    members = cast("dict[str, Any]", claims["cnf"]) if isinstance(claims["cnf"], dict) else {}
    if "x5t#S256" in members:
        raise TokenRejected("certificate", issuer)  # RFC 8705: TLS ends before the gateway
    thumbprint = members.get("jkt") if len(members) == 1 else None
    if not isinstance(thumbprint, str) or not thumbprint:  # guard: token-bound-elsewhere
        raise TokenRejected("confirmation", issuer)
    return thumbprint


async def verify_id_token(
    tenant: TenantId, text: str, issuer: Issuer, keys: KeySource, *, nonce: str | None
) -> Mapping[str, Any]:
    """Verify an ID token for the gateway's client, and return its claims; `nonce` is None after a refresh.

    Raises:
        TokenRejected: the token is invalid, or for another issuer, client or sign-in.
        Unavailable: the issuer's keys cannot be fetched now.
    """
    header, _ = _read_unverified(text)
    client = "" if issuer.sign_in is None else issuer.sign_in.client_id
    if str(header.get("typ", "jwt")).lower() not in _ID_TOKEN_TYPES:  # guard: id-token-type
        raise TokenRejected("type", issuer)
    key = await _find_key(tenant, issuer, header, keys)
    claims = verify_claims(text, key, issuer, (client,))  # guard: id-token-audience
    is_for_others = claims["aud"] not in (client, [client]) and "azp" not in claims
    if is_for_others or claims.get("azp", client) != client:  # guard: id-token-party
        raise TokenRejected("audience", issuer)
    if nonce is not None and claims.get("nonce") != nonce:  # guard: id-token-nonce
        raise TokenRejected("nonce", issuer)
    _expiry_of(claims, issuer)
    return claims


def read_person(claims: Mapping[str, Any], issuer: Issuer, scopes: frozenset[str]) -> IdentityClaims:
    """Return the person that verified claims describe.

    Raises:
        TokenRejected: the subject is missing or malformed.
    """
    subject, claimed = _subject_of(claims, issuer), claim_at(claims, issuer.groups_claim)
    return IdentityClaims(
        subject=subject,
        groups=texts_of(claimed),
        scopes=scopes,
        has_all_groups=_has_all_groups(claims, claimed, issuer),
    )


def _has_all_groups(claims: Mapping[str, Any], claimed: object, issuer: Issuer) -> bool:
    """True if the groups claim contains all groups of the person.

    An issuer may replace a long list by a reference (distributed claims, OpenID Connect Core 1.0 section 5.6.2;
    Microsoft's `hasgroups`).
    """
    several = claimed.split() if isinstance(claimed, str) else claimed
    if isinstance(several, list) and len(cast("list[object]", several)) > MAX_CLAIMED_GROUPS:
        return False
    elsewhere = claims.get("_claim_names")
    is_referred = isinstance(elsewhere, dict) and issuer.groups_claim in elsewhere
    return not is_referred and claims.get("hasgroups") in {None, False, "false"}


async def _find_key(tenant: TenantId, issuer: Issuer, header: Mapping[str, Any], keys: KeySource) -> jwt.PyJWK:
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in issuer.algorithms or algorithm not in ALGORITHMS:  # guard: token-algorithm
        raise TokenRejected("algorithm", issuer)
    if kid is not None and not isinstance(kid, str):
        raise TokenRejected("key", issuer)
    published = await keys.find(tenant, issuer.jwks_url, kid, state=issuer.state)
    usable = [key for jwk in published if (key := _parse_key(jwk, algorithm)) is not None]
    if len(usable) != 1:  # a token without a key id needs a set with exactly one key for its algorithm
        raise TokenRejected("key", issuer)
    return usable[0]


def _parse_key(jwk: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Parse a published JWK; keys of usual size are parsed once for all tokens."""
    text = msgspec.json.encode(jwk)
    return _parse_key_once(text, algorithm) if len(text) <= MAX_CACHED_KEY_BYTES else read_key(jwk, algorithm)


@lru_cache(MAX_CACHED_KEYS)
def _parse_key_once(text: bytes, algorithm: str) -> jwt.PyJWK | None:
    return read_key(decode_json(text), algorithm)


def bearer_token(authorization: str | None, scheme: bytes = b"bearer") -> bytes | None:
    """Return the token of an Authorization header with this scheme; None without such a token."""
    if authorization is None or len(authorization) > MAX_TOKEN_HEADER_BYTES:
        return None
    try:
        named, _, token = authorization.encode("latin-1").partition(b" ")  # the bytes as received
    except UnicodeEncodeError:
        return None
    token = token.strip(b" ")
    return token if named.lower() == scheme and token else None


def is_jwt(token: str) -> bool:
    """True if an access token has the form of a signed JWT; other tokens are opaque."""
    return token.count(".") == 2


def read_key(jwk: Mapping[str, Any], algorithm: str) -> jwt.PyJWK | None:
    """Parse a published JWK; None unless its use, type and size permit verification with this algorithm.

    Very large keys are refused, because their verification would block the event loop.
    """
    kind, use, operations = jwk.get("kty"), jwk.get("use", "sig"), jwk.get("key_ops")
    if kind not in ("RSA", "EC", "OKP") or use != "sig" or jwk.get("alg", algorithm) != algorithm:  # guard: key-use
        return None
    if operations is not None and not (isinstance(operations, list) and "verify" in operations):
        return None
    if kind == "RSA" and not _is_bounded(jwk):  # guard: key-size
        return None
    try:
        public = {name: jwk[name] for name in ("kty", "n", "e", "crv", "x", "y") if name in jwk}
        return jwt.PyJWK(public, algorithm=algorithm)
    except BROKEN:
        return None


def _is_bounded(jwk: Mapping[str, Any]) -> bool:
    modulus, exponent = jwk.get("n"), jwk.get("e")
    if not isinstance(modulus, str) or not isinstance(exponent, str):
        return False
    if len(modulus) > MAX_RSA_BITS or len(exponent) > 8:
        return False
    try:
        bits, power = from_base64url_uint(modulus).bit_length(), from_base64url_uint(exponent)
    except BROKEN:
        return False
    return MIN_RSA_BITS <= bits <= MAX_RSA_BITS and 3 <= power < MAX_RSA_EXPONENT


def _read_unverified(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        token = jwt.decode_complete(text, options={"verify_signature": False})
        return token["header"], token["payload"]
    except BROKEN:
        raise TokenRejected("form") from None


def audiences_of(text: str) -> frozenset[str]:
    """Return the unverified audiences of a token; none if it is no JWT."""
    try:
        return claimed_audiences(_read_unverified(text)[1])
    except TokenRejected:
        return frozenset()


def claimed_audiences(claims: Mapping[str, Any]) -> frozenset[str]:
    """Return the audiences in the claims of a token."""
    claimed = claims.get("aud")
    several = cast("list[object]", claimed) if isinstance(claimed, list) else [claimed]
    return frozenset(each for each in several if isinstance(each, str))


def verify_claims(text: str, key: jwt.PyJWK, issuer: Issuer, audiences: Collection[str]) -> Mapping[str, Any]:
    """Verify signature, issuer, audience and times of a token, and return its claims.

    Raises:
        TokenRejected: the signature or a registered claim is invalid.
    """
    try:
        return jwt.decode(
            text,
            key=key,
            algorithms=[key.algorithm_name],
            audience=list(audiences),  # guard: token-audience
            issuer=issuer.url,
            leeway=CLOCK_SKEW_S,
            options={"require": list(_REQUIRED), "verify_exp": True, "verify_nbf": True},  # guard: token-times
        )
    except jwt.InvalidAudienceError:
        raise TokenRejected("audience", issuer) from None
    except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
        raise TokenRejected("time", issuer) from None
    except jwt.MissingRequiredClaimError:
        raise TokenRejected("claims", issuer) from None
    except jwt.InvalidSignatureError:
        raise TokenRejected("signature", issuer) from None
    except BROKEN:
        raise TokenRejected("form", issuer) from None


def _expiry_of(claims: Mapping[str, Any], issuer: Issuer) -> datetime:
    try:
        end = min(float(claims["exp"]), float(claims["iat"]) + issuer.max_lifetime_s)  # guard: token-lifetime
        expires_at = datetime.fromtimestamp(end + CLOCK_SKEW_S, UTC)
    except BROKEN:
        raise TokenRejected("time", issuer) from None
    if expires_at.timestamp() <= time.time():
        raise TokenRejected("lifetime", issuer)
    return expires_at


def _subject_of(claims: Mapping[str, Any], issuer: Issuer) -> str:
    subject = claim_at(claims, issuer.subject_claim)
    if not isinstance(subject, str):
        raise TokenRejected("subject", issuer)
    if not is_subject(subject):  # guard: token-subject-form
        raise TokenRejected("subject", issuer)
    return subject


def claim_at(claims: Mapping[str, Any], place: str) -> object:
    """Return the claim with a name or at a JSON Pointer; None if it is missing."""
    if not place.startswith("/"):
        return claims.get(place)
    value: object = claims
    for part in place[1:].split("/"):
        if not isinstance(value, dict):
            return None
        value = cast("dict[str, object]", value).get(unescape_token(part))
    return value


def texts_of(value: object) -> frozenset[str]:
    """Return the strings of a list, or the space-separated words of a string."""
    if isinstance(value, str):
        return frozenset(value.split()[:MAX_CLAIMED_GROUPS])
    if isinstance(value, list):
        several = cast("list[object]", value)[:MAX_CLAIMED_GROUPS]
        return frozenset(each for each in several if isinstance(each, str))
    return frozenset()
