"""Secret keys of the installation by name, the values that need them, and the state of a re-encryption."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """A registered secret key. `retained` contains derived keys that are still needed, encrypted with a newer key."""

    name: str
    known_since: datetime
    forgotten_at: datetime | None
    retained: bytes | None


class KeyNeed(NamedTuple):
    """The number of values of one kind that need a secret key; `name` is empty if the key is unknown."""

    kind: str
    name: str
    uses: int


class DependentKey(NamedTuple):
    """An API key whose digest needs a secret key."""

    slug: str
    id: str
    name: str
    last_used_at: datetime | None


class KeyHolder(NamedTuple):
    """A replica, and the names of its secret keys. The first key encrypts new values."""

    replica: str
    names: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationState:
    """The last re-encryption: all values up to the tenant `after_slug` are encrypted with the key `key_name`."""

    key_name: str
    started_at: datetime
    finished_at: datetime | None
    holder: str
    leased_until: datetime
    after_slug: str
    tenants_done: int
    values_done: int
    unreadable: int
    fault: str | None
