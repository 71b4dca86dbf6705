"""Verification of DPoP proofs (RFC 9449), which requests with a key-bound access token require, and with which clients
have tokens of the gateway bound to their keys.

A proof is bound to method, URL and token of one request. Its id is accepted once, across all replicas: used ids are
stored in Redis, and while Redis is unavailable, bound tokens are refused. The gateway sends no `DPoP-Nonce`, because
single use within a short window already prevents replays.
"""

import base64
import hashlib
import hmac
import json
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import urlsplit

import jwt

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ProofRefused
from gateway.errors import LimitExceeded
from gateway.identity.access_tokens import BROKEN, read_key
from gateway.identity.limits import (
    MAX_MODULUS_LENGTH,
    MAX_PROOF_ID_LENGTH,
    MAX_PROOF_LENGTH,
    PROOF_BURST_S,
    PROOF_LIFE_S,
    PROOFS_PER_S,
    PROOFS_PER_S_EACH,
    WINDOW_S,
)
from gateway.identity.local_token_buckets import TokenBuckets

PROOF_ALGORITHMS = ("ES256", "ES384", "ES512", "EdDSA", "RS256", "PS256")
"""Signature algorithms of proofs."""
_EXPONENT = "AQAB"
"""The usual exponent of RSA keys; others are costly to verify."""
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_THUMBPRINT_MEMBERS = {"EC": ("crv", "kty", "x", "y"), "OKP": ("crv", "kty", "x"), "RSA": ("e", "kty", "n")}
"""The JWK members of a thumbprint, in order (RFC 7638 section 3.2, RFC 8037 section 2)."""
_REQUIRED = ("jti", "htm", "htu", "iat")
_PORTS = {"http": 80, "https": 443}

UseOnce = Callable[[TenantId, str, int], Awaitable[bool]]
"""Marks an id as used for a number of seconds; returns False if it was already used. May raise `Unavailable`."""


@dataclass(slots=True)
class Proof:
    """The proof of a request; `text` is None if the header is missing or repeated."""

    text: str | None = field(repr=False)
    method: str
    is_used: bool = False
    """True after the first check, so that the same request can be checked again."""


class ProofChecks:
    """Verifies the proofs of requests with bound tokens."""

    def __init__(self, use_once: UseOnce) -> None:
        self._use_once = use_once
        self._tenants = TokenBuckets(rate=PROOFS_PER_S, burst=PROOFS_PER_S * PROOF_BURST_S)
        self._each = TokenBuckets(rate=PROOFS_PER_S_EACH, burst=PROOFS_PER_S_EACH * PROOF_BURST_S)

    async def check(self, tenant: TenantId, proof: Proof, *, token: str, url: str, thumbprint: str) -> None:
        """Verify a proof for a request to this URL, with a token that is bound to the key with this thumbprint.

        Raises:
            ProofRefused: the proof is missing, invalid for this request, or already used.
            LimitExceeded: the client's key or the tenant has too many proofs a second.
            Unavailable: Redis is unavailable, so an earlier use cannot be excluded.
        """
        if not proof.is_used:
            found, claims = _verify(proof, url)
            if not _is_equal(found, thumbprint):  # guard: proof-key
                raise ProofRefused("the DPoP proof must be signed with the key to which the access token is bound")
            expected = _encode(hashlib.sha256(token.encode("ascii", "replace")).digest())
            if not _is_equal(claims.get("ath"), expected):  # guard: proof-token
                raise ProofRefused("ath of the DPoP proof must be the hash of the access token")
            await self._use(tenant, proof, found, claims["jti"], bucket=tenant)

    async def prove(self, tenant: TenantId, proof: Proof, *, url: str) -> str:
        """Verify the proof of a request for tokens, and return the thumbprint of its key; raises like `check`.

        Anyone can make such a proof, so these have a limit of their own.
        """
        thumbprint, claims = _verify(proof, url)
        bucket = f"tokens of {tenant}"  # guard: proof-rates-apart
        await self._use(tenant, proof, thumbprint, claims["jti"], bucket=bucket)
        return thumbprint

    async def _use(self, tenant: TenantId, proof: Proof, thumbprint: str, proof_id: str, *, bucket: str) -> None:
        wait_s = self._each.take(f"{tenant} {thumbprint}") or self._tenants.take(bucket)
        if wait_s > 0:  # guard: proof-rate
            raise LimitExceeded("too many DPoP proofs for this tenant; retry later", retry_after_s=max(1.0, wait_s))
        named = hashlib.sha256(f"{thumbprint} {proof_id}".encode("utf-8", "replace")).hexdigest()
        is_first = await self._use_once(tenant, f"dpop:{named}", math.ceil(PROOF_LIFE_S))
        if not is_first:  # guard: proof-once
            raise ProofRefused("the DPoP proof was used already; make a new one for each request")
        proof.is_used = True


def thumbprint_of(jwk: Mapping[str, Any]) -> str:
    """Return the thumbprint of a public key (RFC 7638), in the form of `cnf.jkt`.

    Raises:
        KeyError: the key is of an unknown kind, or incomplete.
    """
    members = {name: jwk[name] for name in _THUMBPRINT_MEMBERS[str(jwk.get("kty"))]}
    return _encode(hashlib.sha256(json.dumps(members, separators=(",", ":")).encode()).digest())


def _verify(proof: Proof, url: str) -> tuple[str, Mapping[str, Any]]:
    """Verify a proof for a request to a URL; return the thumbprint of its key, and its claims."""
    if proof.text is None or len(proof.text) > MAX_PROOF_LENGTH:
        raise ProofRefused("the header DPoP is missing, repeated or too long; send one proof with each request")
    thumbprint, claims = _read(proof.text)
    if claims["htm"] != proof.method:  # guard: proof-method
        raise ProofRefused(f"htm of the DPoP proof must be {proof.method}")
    if _normal(claims["htu"]) != _normal(url):  # guard: proof-url
        raise ProofRefused(f"htu of the DPoP proof must be {url}")
    if not _is_recent(claims["iat"]):  # guard: proof-time
        raise ProofRefused(f"iat of the DPoP proof must be within {WINDOW_S} seconds of the gateway's time")
    proof_id = claims["jti"]
    if not isinstance(proof_id, str) or not 0 < len(proof_id) <= MAX_PROOF_ID_LENGTH:
        raise ProofRefused(f"jti of the DPoP proof must be a text of at most {MAX_PROOF_ID_LENGTH} characters")
    return thumbprint, claims


def _read(text: str) -> tuple[str, Mapping[str, Any]]:
    """Verify the signature of a proof by the key in its header; return the thumbprint of the key, and the claims."""
    try:
        header = jwt.get_unverified_header(text)
        algorithm, sent = header.get("alg"), header.get("jwk")
        jwk = cast("dict[str, Any]", sent) if isinstance(sent, dict) else {}
        if header.get("typ") != "dpop+jwt" or algorithm not in PROOF_ALGORITHMS:  # guard: proof-type
            raise ProofRefused(f"the DPoP proof must have the typ dpop+jwt, and one of {', '.join(PROOF_ALGORITHMS)}")
        if not jwk or _PRIVATE & jwk.keys():  # guard: proof-public-key
            raise ProofRefused("the DPoP proof must have the public key as jwk, without its private part")
        if jwk.get("kty") == "RSA" and not _is_cheap(jwk):  # guard: proof-cheap-key
            raise ProofRefused("an RSA key of a DPoP proof must have at most 4096 bits and the exponent 65537")
        key = read_key(jwk, algorithm)
        if key is None:
            raise ProofRefused("the jwk of the DPoP proof must be a key for the algorithm of its header")
        options: Any = {"require": list(_REQUIRED), "verify_aud": False, "verify_iat": False}
        return thumbprint_of(jwk), jwt.decode(text, key=key, algorithms=[algorithm], options=options, leeway=WINDOW_S)
    except BROKEN:
        raise ProofRefused("the DPoP proof is no signed JWT with jti, htm, htu and iat") from None


def _is_cheap(jwk: Mapping[str, Any]) -> bool:
    return len(str(jwk.get("n")).rstrip("=")) <= MAX_MODULUS_LENGTH and jwk.get("e") == _EXPONENT


def _is_recent(issued_at: object) -> bool:
    if not isinstance(issued_at, int | float) or isinstance(issued_at, bool):
        return False
    return abs(time.time() - min(max(issued_at, 0), 2**40)) <= WINDOW_S


def _normal(url: object) -> object:
    """Normalize a URL: no query, fragment, default port or last slash, scheme and host in lower case.

    None if the URL is invalid. A resource is the same with a slash at its end.
    """
    try:
        parts = urlsplit(str(url))
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return parts.scheme, parts.hostname, port, parts.path.removesuffix("/"), parts.username


def _is_equal(given: object, expected: str) -> bool:
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _encode(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
