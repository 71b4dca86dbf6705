"""Assertions of the gateway (RFC 7519): JWTs that name the caller to an upstream, and the keys that verify them.

The signing keys are derived from the secret keys, so every replica has them; the first one signs. All are published, so
that assertions from before a rotation stay valid for their minute.
"""

import hashlib
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from gateway.domain.tenancy.principals import Principal
from gateway.errors import CredentialMissing

ALGORITHM = "ES256"
LIFETIME_S = 60
"""Seconds for which an assertion is valid."""
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the group of P-256 (FIPS 186-5, SP 800-186 section 3.2.1.3)."""


class AssertionSigner:
    """Signs assertions, and publishes the keys that verify them."""

    def __init__(self, derive_all: Callable[[str], Sequence[bytes]], *, public_url: str | None) -> None:
        """`derive_all` derives secret bytes for a purpose from each secret key, the current one first."""
        self._keys = [_private_key(seed) for seed in derive_all("assertions")]
        self._published = [_public_jwk(key) for key in self._keys]
        self._public_url = public_url

    @property
    def key_set(self) -> dict[str, object]:
        """The JWK set (RFC 7517) for upstreams."""
        return {"keys": self._published}

    def sign(self, principal: Principal, *, audience: str, action: tuple[str, str]) -> str:
        """Return an assertion about the caller; `action` is the kind of the call and the name of its primitive.

        Raises:
            CredentialMissing: assertions cannot be made here, or the audience is of this gateway.
        """
        check_audience(audience, self._public_url)
        now = int(time.time())
        claims = {
            "iss": f"{self._public_url}/t/{principal.slug}",
            "sub": principal.subject,
            "principal": principal.name,
            "aud": audience,
            "iat": now,
            "exp": now + LIFETIME_S,
            "jti": secrets.token_urlsafe(16),
            "tenant": principal.slug,
            "tool": action[1],
        }
        return jwt.encode(claims, self._keys[0], algorithm=ALGORITHM, headers={"kid": self._published[0]["kid"]})


def check_audience(audience: str, public_url: str | None) -> None:
    """Refuse an audience whose assertions would be accepted by the gateway itself.

    Raises:
        CredentialMissing: assertions cannot be made here, or the audience is of this gateway.
    """
    if public_url is None:
        raise CredentialMissing("Signed assertions need the public URL of the gateway: set GATEWAY_PUBLIC_URL.")
    try:
        host = urlsplit(audience).netloc.lower()
    except ValueError:
        raise CredentialMissing("The audience of a signed assertion looks like a URL, but is not valid.") from None
    if host == urlsplit(public_url).netloc.lower():  # guard: assertion-audience
        raise CredentialMissing("The audience of a signed assertion must not be a URL of the gateway itself.")


def _private_key(seed: bytes) -> ec.EllipticCurvePrivateKey:
    # 64 bytes modulo the order of the group: the key is as good as uniform (FIPS 186-5 appendix A.2.1)
    number = int.from_bytes(hashlib.sha512(seed).digest(), "big") % (_ORDER - 1) + 1
    return ec.derive_private_key(number, ec.SECP256R1())


def _public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    jwk: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    thumbprint = hashlib.sha256(f"{jwk['x']}.{jwk['y']}".encode()).hexdigest()[:16]
    return {**jwk, "use": "sig", "alg": ALGORITHM, "kid": thumbprint}
