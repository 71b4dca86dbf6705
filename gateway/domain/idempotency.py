"""A request that may be repeated under one `Idempotency-Key`: the attempt that runs, and the answer that is kept."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a request; a record has one at a time, and only its attempt may commit."""

    record: str
    """SHA-256 of principal and key, in hex: the key itself is not stored."""
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer as it was sent; `body` is None where it had too many bytes to be kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes | None
