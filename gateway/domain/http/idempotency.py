"""Records of idempotent requests (`Idempotency-Key`): the running attempt and the stored response."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt to run a request. A record has one attempt at a time; only the current attempt may commit."""

    record: str
    """SHA-256 of principal and key, in hex; the key itself is not stored."""
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """A response as it was sent; `body` is None if it was too large to store."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None
