"""Proofs of possession (DPoP, RFC 9449) as clients make them."""

import base64
import hashlib
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from gateway.identity.dpop import thumbprint_of
from tests.support.issuer import PrivateKey, public_jwk


@dataclass(frozen=True, slots=True)
class ProofKey:
    """A client's key, by default a new elliptic one."""

    private: PrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    algorithm: str = "ES256"

    @property
    def thumbprint(self) -> str:
        """The thumbprint to which a token is bound."""
        return thumbprint_of(self.jwk)

    @property
    def jwk(self) -> dict[str, Any]:
        """The public key."""
        return public_jwk(self.private, None)

    def prove(self, url: str, token: str | None, method: str = "POST", *, header: Any = None, **claims: Any) -> str:
        """A proof for one request; a claim of None is left out, `header` replaces members of the header."""
        standard = {"jti": str(uuid4()), "htm": method, "htu": url, "iat": int(time.time())}
        if token is not None:
            standard["ath"] = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).decode().rstrip("=")
        payload = {name: value for name, value in {**standard, **claims}.items() if value is not None}
        headers: dict[str, Any] = {"typ": "dpop+jwt", "jwk": self.jwk, **(header or {})}
        return jwt.encode(payload, self.private, algorithm=self.algorithm, headers=headers)
