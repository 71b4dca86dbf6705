"""Authorization codes and refresh tokens: parser, generator, digests, and the detection of reuse.

A code is `GRANT.SECRET`, a refresh token `GRANT.FAMILY.SECRET`. The family is constant, and the secret changes with
each use. So the reuse of a replaced token is detected without storing it, and a forged token has no effect. The family
also states if all tokens of the grant are bound to a key of the client.
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

RETRY = timedelta(seconds=10)
"""Time during which a retry with the former refresh token returns the same successor, in case the response was lost."""
_BOUND_END = "B"
"""The end of the family of a grant that was bound from its first token; random families end with A, Q, g or w."""
_TOKEN_PATTERN = re.compile(r"(gnt_[0-9a-z]{20})\.(?:([A-Za-z0-9_-]{22})\.)?([A-Za-z0-9_-]{43})")


class RefreshTokenState(Enum):
    """State of a presented refresh token."""

    CURRENT = auto()
    RETRIED = auto()
    """The former token, presented again within `RETRY`."""
    REUSED = auto()
    """An already replaced token: this token or the current one was stolen."""
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Presented:
    """A parsed code or refresh token from a client; only a refresh token has a family."""

    grant: KeyId
    secret: str = field(repr=False)
    family: str | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """The text of the refresh token."""
        return f"{self.grant}.{self.family}.{self.secret}"

    @property
    def is_bound(self) -> bool:
        """True if every refresh token of the grant, from the first one, was issued for a key of the client."""
        return self.family is not None and self.family.endswith(_BOUND_END)

    def is_code(self, stored: GrantSecrets) -> bool:
        """True if this is the stored code of the grant."""
        return self.family is None and hmac.compare_digest(digest_of(self.secret), stored.code)

    def state(self, stored: GrantSecrets) -> RefreshTokenState:
        """State of this refresh token, compared with the stored digests of its grant."""
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

        A retry has the same successor as the first request; None if the key of the first request no longer exists.
        """
        derived = [replace(self, secret=_derive(key, self)) for key in keys]
        if stored.refresh is not None and self.state(stored) is RefreshTokenState.RETRIED:
            return next((each for each in derived if digest_of(each.secret) == stored.refresh), None)
        return derived[0]


def new_refresh(grant: KeyId, *, is_bound: bool) -> Presented:
    """Return the first refresh token of a grant."""
    family = secrets.token_urlsafe(16)
    if is_bound:
        family = family[:-1] + _BOUND_END
    return Presented(grant=grant, family=family, secret=secrets.token_urlsafe(32))


def write_code(grant: KeyId, secret: str) -> str:
    """Return the text of a code."""
    return f"{grant}.{secret}"


def read_presented(text: str) -> Presented | None:
    """Parse a code or refresh token; None for any other text."""
    found = _TOKEN_PATTERN.fullmatch(text)
    return None if found is None else Presented(grant=KeyId(found[1]), family=found[2], secret=found[3])


def rotated(stored: GrantSecrets, following: Presented) -> GrantSecrets:
    """Return the digests of a grant after its refresh token was replaced by `following`."""
    return replace(
        stored,
        family=digest_of(following.family or ""),
        refresh=digest_of(following.secret),
        former_refresh=stored.refresh,
        rotated_at=datetime.now(UTC),
    )


def digest_of(secret: str) -> bytes:
    """Return the digest of a random secret: 256 bits, or the 128 bits of a family."""
    return hashlib.sha256(secret.encode()).digest()


def _derive(key: bytes, presented: Presented) -> str:
    mac = hmac.digest(key, presented.text.encode(), hashlib.sha256)
    return urlsafe_b64encode(mac).decode().rstrip("=")
