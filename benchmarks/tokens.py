"""Access tokens of an issuer whose keys the upstream of a measurement publishes: both processes derive the same key."""

import time
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

KEYS_PATH = "/keys"
_KEY = ec.derive_private_key(0xBE4C4, ec.SECP256R1())
GROUPS = [f"group-{number}" for number in range(60)]
"""Makes a token of usual size, about 1,400 bytes."""


def key_set() -> dict[str, Any]:
    """Return the JWK set of the issuer."""
    jwk = ECAlgorithm.to_jwk(_KEY.public_key(), as_dict=True)
    return {"keys": [{**jwk, "kid": "bench", "use": "sig", "alg": "ES256"}]}


def access_token(issuer: str, audience: str, subject: str = "ada") -> str:
    """Return a token that is valid for an hour."""
    now = int(time.time())
    claims = {"iss": issuer, "aud": audience, "sub": subject, "iat": now, "exp": now + 3600, "groups": GROUPS}
    return jwt.encode(claims, _KEY, algorithm="ES256", headers={"kid": "bench"})
