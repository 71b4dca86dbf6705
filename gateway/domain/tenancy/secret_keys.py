"""Secret keys of the installation by name, the values that need them, and the state of a re-encryption."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, NamedTuple

from gateway.domain.members.markers import About, ShownAs


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


@dataclass(frozen=True, slots=True)
class DependentKey:
    """A valid API key whose digest needs a secret key."""

    slug: Annotated[str, ShownAs("tenant"), About("The slug of the tenant that owns the key.")]
    id: Annotated[str, About("The id of the key.")]
    name: Annotated[str, About("The name of the key.")]
    last_used_at: Annotated[datetime | None, About("The time of its last use, to the hour; null if unknown.")]


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """A running replica and the names of its secret keys, the first of which encrypts new values."""

    stem: ClassVar[str] = "Replica"
    replica: Annotated[str, About("The random id of the process.")]
    names: Annotated[
        Sequence[str],
        ShownAs("secret_keys"),
        About("The names of the keys, in the order of `GATEWAY_SECRET_KEYS` on the replica."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RotationState:
    """The last re-encryption."""

    stem: ClassVar[str] = "SecretRotation"
    key_name: Annotated[str, About("The name of the secret key that re-encrypts all values.")]
    started_at: Annotated[datetime, About("The time at which the re-encryption started.")]
    finished_at: Annotated[
        datetime | None, About("The time at which the re-encryption ended; null while it is running.")
    ]
    holder: str
    leased_until: datetime
    after_slug: str
    """All values up to this tenant are encrypted with the key."""
    tenants_done: Annotated[int, About("The number of tenants whose values are re-encrypted.")]
    values_done: Annotated[int, About("The number of re-encrypted values.")]
    unreadable: Annotated[
        int, About("The number of values that no configured secret key decrypts; they are left unchanged.")
    ]
    fault: Annotated[str | None, About("The reason for a delay; null if there is none.")]


_NeededBy = Annotated[Mapping[str, int], About("The number of values that need the key, by kind.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKeyState:
    """A secret key, identified by a name that is derived from the key and does not reveal it."""

    stem: ClassVar[str] = "SecretKey"
    name: Annotated[str, About("The name of the secret key, 16 hexadecimal digits.")]
    is_current: Annotated[bool, About("True for the first key of `GATEWAY_SECRET_KEYS`, which encrypts new values.")]
    is_configured: Annotated[bool, About("True if this replica has the key.")]
    known_since: Annotated[datetime, About("The time at which a replica first started with the key.")]
    forgotten_at: Annotated[
        datetime | None, About("The time of `gateway secrets forget` for this key; null otherwise.")
    ]
    needs: Sequence[KeyNeed]
    """The values that need the key."""
    dependent: Annotated[
        Sequence[DependentKey],
        ShownAs("api_keys"),
        About("The first 20 API keys whose digest needs the secret key."),
    ]
    can_be_removed: Annotated[
        bool, About("True if nothing needs the key, so it can be removed from `GATEWAY_SECRET_KEYS`.")
    ]
    """Everything that outlasts the key is then sealed under the current one."""

    @property
    def needed_by(self) -> _NeededBy:
        """The sums of the needs of each kind."""
        found: dict[str, int] = {}
        for need in self.needs:
            found[need.kind] = found.get(need.kind, 0) + need.uses
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKeysState:
    """The secret keys of the installation, the values that need them, and the last re-encryption."""

    stem: ClassVar[str] = "SecretKeys"
    keys: Annotated[Sequence[SecretKeyState], About("All secret keys that were ever configured.")]
    unmarked: Annotated[
        int,
        ShownAs("unmarked_api_keys"),
        About(
            "The number of API keys that were not used since an earlier release made their digest; each may need any "
            "older secret key."
        ),
    ]
    unmarked_keys: Annotated[Sequence[DependentKey], ShownAs("unmarked"), About("The first 20 of those API keys.")]
    rotation: Annotated[RotationState | None, About("The last re-encryption; null: there was none.")]
    replicas: Annotated[Sequence[KeyHolder], About("The replicas that reported in the last minute.")]
