"""Encryption of single values in Redis: credentials, and what is worth as much as a credential.

AES-256-GCM with a key that all replicas derive. The Redis key of a value is authenticated with it, so a value that was
copied from another key cannot be decrypted.
"""

import os

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

log = structlog.get_logger(__name__)

_NONCE_BYTES = 12


class SealedValues:
    """Encrypts and decrypts values under one secret."""

    def __init__(self, secret: bytes) -> None:
        self._cipher = AESGCM(secret)

    def seal(self, key: str, value: bytes) -> bytes:
        """Encrypt a value for this Redis key."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, value, key.encode())

    def open(self, key: str, sealed: bytes) -> bytes | None:
        """Return the value; None if it was not encrypted for this Redis key with this secret."""
        try:
            return self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], key.encode())
        except (InvalidTag, ValueError):
            log.error("sealed_value_unreadable")
            return None
