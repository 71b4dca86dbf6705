"""Signing keys of the gateway (ES256), derived from its secret keys, one set for each purpose.

Every replica derives the same keys. The key derived from the first secret key signs, and all keys verify. So signatures
remain valid after a rotation of secret keys.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

ALGORITHM = "ES256"
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the group of P-256 (FIPS 186-5, SP 800-186 section 3.2.1.3)."""


class SigningKeys:
    """The keys of one purpose; `seeds` are derived for this purpose from each secret key, the current one first."""

    def __init__(self, seeds: Sequence[bytes]) -> None:
        private = [_private_key(seed) for seed in seeds]
        self._private = private[0]
        self.published = [_public_jwk(key) for key in private]
        """The public keys as JWKs (RFC 7517)."""
        self._public = {str(jwk["kid"]): key.public_key() for jwk, key in zip(self.published, private, strict=True)}

    def sign(self, claims: Mapping[str, Any], *, kind: str) -> str:
        """Return a signed JWT with these claims; `kind` is the `typ` header."""
        headers = {"kid": self.published[0]["kid"], "typ": kind}
        return jwt.encode(dict(claims), self._private, algorithm=ALGORITHM, headers=headers)

    def find(self, kid: object) -> ec.EllipticCurvePublicKey | None:
        """Return the public key with this id."""
        return self._public.get(kid) if isinstance(kid, str) else None


def _private_key(seed: bytes) -> ec.EllipticCurvePrivateKey:
    # 64 bytes modulo the order of the group are practically uniform (FIPS 186-5 appendix A.2.1)
    number = int.from_bytes(hashlib.sha512(seed).digest(), "big") % (_ORDER - 1) + 1
    return ec.derive_private_key(number, ec.SECP256R1())


def _public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    jwk: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    thumbprint = hashlib.sha256(f"{jwk['x']}.{jwk['y']}".encode()).hexdigest()[:16]
    return {**jwk, "use": "sig", "alg": ALGORITHM, "kid": thumbprint}
