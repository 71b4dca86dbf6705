"""API keys of the form `mcpg_<environment>_<id>_<secret><checksum>`.

The gateway finds the key by its id and verifies the secret (32 random bytes). The CRC-32 detects a mistyped key without
a database query. During a rotation with an overlap, a key has two secrets: the newest, and the former until its end.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import IssuerId, KeyId, TenantId, mint
from gateway.domain.members.formats import PRINTABLE
from gateway.domain.members.markers import About, Form, Length, Names, Option, Setter, Shape, StoredAs
from gateway.domain.members.secret import SecretStatus
from gateway.domain.tenancy.recorded_fields import Omitted

PEPPER_PURPOSE = "pepper"
"""Purpose of the derived key under which the API keys are digested."""

KEY_PREFIX = "mcpg_"
"""Begin of each key of a tenant; a token without it may be an access token."""
KEY_PATTERN = f"{KEY_PREFIX}[a-z]{{2,12}}_[0-9a-z]{{20}}_[A-Za-z0-9-]{{43}}[0-9a-f]{{8}}"
"""The form of a key, for secret scanners; docs/keys.md publishes it."""

_FORM = re.compile(rf"{KEY_PREFIX}[a-z]{{2,12}}_(?P<id>[0-9a-z]{{20}})_[A-Za-z0-9-]{{43}}(?P<crc>[0-9a-f]{{8}})")
_TEXTS = re.compile(KEY_PATTERN)


class Scope(StrEnum):
    """Permission of a key."""

    MCP = "mcp"
    ADMIN = "admin"
    APPROVE = "approve"
    AUDIT = "audit"
    PROVIDE = "provide"


class KeyMatch(StrEnum):
    """Relation of a presented key text to the stored key with the same id."""

    CURRENT = "current"
    OLD = "old"
    OTHER = "other"
    UNKNOWN = "unknown"


class KeyState(StrEnum):
    """State of a key."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySecret:
    """One secret of a key: a digest of the key's text, which is not stored."""

    digest: Omitted[bytes]
    pepper: Omitted[str | None] = None
    """The name of the secret key of the digest; None if unknown."""
    made_by: tuple[str, ...] = ()
    """Principals that may know the text: the author of its creation or rotation, then the people behind an author that
    is a key. None if an earlier release created it.
    """
    number: int = 1
    """Rises by one with each rotation."""
    made_at: Omitted[datetime | None] = None
    """The time of the creation or rotation; None if an earlier release made it, or the time was not read."""
    ends_at: datetime | None = None
    """The expiry of the former secret; None for the newest one, which expires with the key."""


_NO_TENANT = TenantId("")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStatus(SecretStatus):
    """The state of a key, its secrets and its uses."""

    state: Annotated[KeyState, About("`active`, `expired` or `revoked`."), Shape.LISTED]
    revoked_at: Annotated[datetime | None, About("The time of revocation; null if it is not revoked.")]
    made_by: Annotated[
        tuple[str, ...],
        About(
            "The principals that may know a valid secret: the author of its creation or rotation, and, if that is a "
            "key, the people who made that key; empty for keys of earlier releases."
        ),
        Shape.LISTED,
    ]
    old_secret_until: Annotated[
        datetime | None,
        About("The time until which the previous secret is valid; null if there is none."),
        Shape.LISTED,
    ]
    last_used_at: Annotated[
        datetime | None, About("The time of the last use, to the hour; null if unknown."), Shape.LISTED
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A tenant's API key as stored.

    A person who signs in with an access token is stored in the same form, with the issuer that names the person. No
    text has the digest of such a key, nor that of a key that is not stored yet.
    """

    tenant: Annotated[TenantId, StoredAs("tenant_id")] = _NO_TENANT
    id: KeyId
    name: Annotated[
        str,
        Length(least=1, most=200),
        Form(PRINTABLE),
        About("The name, for people; several keys may have it, but a manifest names the only active key of a name."),
        Option(is_argument=True),
        Shape.LISTED,
    ]
    scopes: Annotated[
        frozenset[Scope],
        Length(least=1, most=len(Scope)),
        About("`mcp` and `approve` exclude each other. A key can grant only its own scopes; the operator all."),
        Setter.CREATION,
        Option(name="scope", default=Scope.MCP),
        Shape.DISTINCT,
        Shape.LISTED,
    ]
    subject: Annotated[
        str | None,
        Length(least=1, most=200),
        Form(PRINTABLE),
        About("The principal of the key, which rotation keeps; default: the key's id."),
        Setter.CREATION,
        Shape.FILLED,
    ] = None
    profile: Annotated[
        str | None,
        Length(most=64),
        About("The only profile where the key is valid; null means all."),
        Setter.CREATION,
        Names("profile"),
    ] = None
    secret: KeySecret = KeySecret(digest=b"")
    created_at: datetime
    expires_at: Annotated[
        datetime | None,
        About("The expiry time; a new one is in the future. Null means never."),
        Option(name="expires"),
        Shape.LISTED,
    ] = None
    revoked_at: datetime | None = None
    version: int
    issuer: Annotated[IssuerId | None, StoredAs("issuer_id")] = None
    former: KeySecret | None = None
    """The secret before the last rotation; it may have expired."""
    last_used_at: Annotated[Omitted[datetime | None], Setter.GATEWAY] = None
    """The hour of the last known use."""

    @property
    def principal(self) -> str:
        """The name of the principal: the subject, or the id of a key without one."""
        return self.subject or self.id

    @property
    def secrets(self) -> tuple[KeySecret, ...]:
        """The valid secrets, the newest first."""
        former = self.former
        if former is None or former.ends_at is None or former.ends_at <= datetime.now(UTC):  # guard: key-former-ends
            return (self.secret,)
        return (self.secret, former)

    @property
    def makers(self) -> Sequence[str]:
        """Principals that may know a valid text of the key, each once."""
        return list(dict.fromkeys(maker for secret in self.secrets for maker in secret.made_by))

    @property
    def state(self) -> KeyState:
        """The current state of the key."""
        if self.revoked_at is not None:
            return KeyState.REVOKED
        is_expired = self.expires_at is not None and self.expires_at <= datetime.now(UTC)
        return KeyState.EXPIRED if is_expired else KeyState.ACTIVE

    @property
    def status(self) -> KeyStatus:
        """The state of the key, of its secrets and of its uses."""
        *_, oldest = self.secrets
        return KeyStatus(
            state=self.state,
            revoked_at=self.revoked_at,
            made_by=tuple(self.makers),
            old_secret_until=oldest.ends_at,
            last_used_at=self.last_used_at,
            secret_at=self.secret.made_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUse:
    """A use of a key in one hour, and the current form of its secret; None if the stored form is current."""

    key: KeyId
    hour: datetime
    secret: KeySecret
    renewed: KeySecret | None = None


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


def find_key_texts(text: str) -> Iterator[str]:
    """Yield the parts of a text that have the form of a key."""
    return (found[0] for found in _TEXTS.finditer(text))


def digest_key(text: str, pepper: bytes) -> bytes:
    """The digest that is stored in place of a key."""
    return hmac.digest(pepper, text.encode(), hashlib.sha256)


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
