"""Texts of authorization codes and refresh tokens, and their digests.

A code is `GRANT.SECRET`, a refresh token `GRANT.FAMILY.SECRET`. The family is constant, and the secret changes with
each use. So a replaced token is recognised without being stored, and an invented token has no effect.
"""

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.grants import GrantSecrets

CODE_S = 60
"""Seconds for which a code is valid."""
RETRY = timedelta(seconds=10)
"""Time for which the former refresh token returns the same successor, for a client that did not receive the
response.
"""
_TEXT = re.compile(r"(gnt_[0-9a-z]{20})\.(?:([A-Za-z0-9_-]{22})\.)?([A-Za-z0-9_-]{43})")


class RefreshTokenState(Enum):
    """The kinds of refresh tokens that a client can present."""

    CURRENT = auto()
    RETRIED = auto()
    """The former one, presented again within seconds."""
    REUSED = auto()
    """A token that was already replaced: it, or the current one, was stolen."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A code or refresh token in the form that a client presents; only a refresh token has a family."""

    grant: KeyId
    secret: str = field(repr=False)
    family: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The text of the refresh token."""
        return f"{self.grant}.{self.family}.{self.secret}"

    def is_code(self, stored: GrantSecrets) -> bool:
        """True for the code of this grant."""
        return self.family is None and hmac.compare_digest(digest_of(self.secret), stored.code)

    def state(self, stored: GrantSecrets) -> RefreshTokenState:
        """Its kind among the refresh tokens of its grant."""
        if self.family is None or stored.family is None:
            return RefreshTokenState.UNKNOWN
        if not hmac.compare_digest(digest_of(self.family), stored.family):  # guard: refresh-family
            return RefreshTokenState.UNKNOWN
        own = digest_of(self.secret)
        if stored.refresh is not None and hmac.compare_digest(own, stored.refresh):
            return RefreshTokenState.CURRENT
        is_recent = stored.rotated_at is not None and datetime.now(UTC) - stored.rotated_at <= RETRY
        is_former = stored.former_refresh is not None and hmac.compare_digest(own, stored.former_refresh)
        if is_recent and is_former:  # guard: refresh-retry
            return RefreshTokenState.RETRIED
        return RefreshTokenState.REUSED

    def next(self, keys: Sequence[bytes], stored: GrantSecrets) -> "Presented | None":
        """The successor of this token, derived from it and a key of the gateway.

        A retry gets the same successor as the first request; None for a retry whose key no longer exists.
        """
        derived = [replace(self, secret=_derive(key, self)) for key in keys]
        if stored.refresh is not None and self.state(stored) is RefreshTokenState.RETRIED:
            return next((each for each in derived if digest_of(each.secret) == stored.refresh), None)
        return derived[0]


def new_refresh(grant: KeyId) -> Presented:
    """Return the first refresh token of a grant."""
    return Presented(grant=grant, family=secrets.token_urlsafe(16), secret=secrets.token_urlsafe(32))


def write_code(grant: KeyId, secret: str) -> str:
    """Return the text of a code."""
    return f"{grant}.{secret}"


def read_presented(text: str) -> Presented | None:
    """Return a code or refresh token; None for any other text."""
    found = _TEXT.fullmatch(text)
    return None if found is None else Presented(grant=KeyId(found[1]), family=found[2], secret=found[3])


def rotated(stored: GrantSecrets, following: Presented) -> GrantSecrets:
    """Return the digests of a grant whose next refresh token is this one."""
    return replace(
        stored,
        family=digest_of(following.family or ""),
        refresh=digest_of(following.secret),
        former_refresh=stored.refresh,
        rotated_at=datetime.now(UTC),
    )


def digest_of(secret: str) -> bytes:
    """Return the digest of a secret of 256 random bits, or of the family's 128."""
    return hashlib.sha256(secret.encode()).digest()


def _derive(key: bytes, presented: Presented) -> str:
    mac = hmac.digest(key, presented.text.encode(), hashlib.sha256)
    return urlsafe_b64encode(mac).decode().rstrip("=")
