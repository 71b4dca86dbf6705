"""API keys of the form `mcpg_<environment>_<id>_<secret><checksum>`.

The gateway finds the key by its id and verifies the secret (32 random bytes). The CRC-32 detects a mistyped key without
a database query.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import IssuerId, KeyId, TenantId, mint

PEPPER_PURPOSE = "pepper"
"""Purpose of the derived key under which the texts of API keys are digested."""

_FORM = re.compile(r"mcpg_[a-z]{2,12}_(?P<id>[0-9a-z]{20})_[A-Za-z0-9-]{43}(?P<crc>[0-9a-f]{8})")


class Scope(StrEnum):
    """Permission of a key."""

    MCP = "mcp"
    ADMIN = "admin"
    APPROVE = "approve"
    AUDIT = "audit"
    PROVIDE = "provide"


class KeyState(StrEnum):
    """State of a key."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A tenant's API key as stored; `digest` is a digest of the key text, which is not stored.

    A person who signs in with an access token is stored in the same form, with the issuer that names the person. No
    text has the digest of such a key.
    """

    tenant: TenantId
    id: KeyId
    name: str
    scopes: frozenset[Scope]
    subject: str
    profile: str | None
    digest: bytes
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    version: int
    issuer: IssuerId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MintedKey:
    """A new key with its text, which is shown once and not stored."""

    id: KeyId
    text: str


def mint_key(environment: str = "live", *, key: KeyId | None = None) -> MintedKey:
    """Return a new random key, or a new secret for an existing key id. Only `text` contains the secret."""
    random_part = (key or mint("key")).removeprefix("key_")
    secret = urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=").replace("_", "-")
    body = f"mcpg_{environment}_{random_part}_{secret}"
    return MintedKey(id=KeyId(f"key_{random_part}"), text=f"{body}{_checksum(body)}")


def key_id_of(text: str) -> KeyId | None:
    """Return the id inside a well-formed key text; None for any other text."""
    found = _FORM.fullmatch(text)
    if found is None or _checksum(text[:-8]) != found["crc"]:  # guard: key-checksum
        return None
    return KeyId(f"key_{found['id']}")


def digest_key(text: str, pepper: bytes) -> bytes:
    """The digest that is stored in place of a key."""
    return hmac.digest(pepper, text.encode(), hashlib.sha256)


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
