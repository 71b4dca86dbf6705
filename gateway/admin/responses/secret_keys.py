"""Response models of the secret keys of the installation; none contains a secret."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from gateway.catalog.identity.secret_keys.status import SecretKeysState, SecretKeyState
from gateway.domain.tenancy.secret_keys import DependentKey, RotationState
from gateway.web.models import ResponseModel


class DependentKeyShown(ResponseModel):
    """A valid API key whose digest needs a secret key."""

    tenant: Annotated[str, Field(description="The slug of the tenant that owns the key.")]
    id: Annotated[str, Field(description="The id of the key.")]
    name: Annotated[str, Field(description="The name of the key.")]
    last_used_at: Annotated[
        datetime | None, Field(description="The time of its last use, to the hour; null if unknown.")
    ]

    @classmethod
    def of(cls, key: DependentKey) -> Self:
        """Build the response from a key."""
        return cls(tenant=key.slug, id=key.id, name=key.name, last_used_at=key.last_used_at)


class SecretKeyShown(ResponseModel):
    """A secret key, identified by a name that is derived from the key and does not reveal it."""

    name: Annotated[str, Field(description="The name of the secret key, 16 hexadecimal digits.")]
    is_current: Annotated[
        bool, Field(description="True for the first key of `GATEWAY_SECRET_KEYS`, which encrypts new values.")
    ]
    is_configured: Annotated[bool, Field(description="True if this replica has the key.")]
    known_since: Annotated[datetime, Field(description="The time at which a replica first started with the key.")]
    forgotten_at: Annotated[
        datetime | None, Field(description="The time of `gateway secrets forget` for this key; null otherwise.")
    ]
    needed_by: Annotated[dict[str, int], Field(description="The number of values that need the key, by kind.")]
    api_keys: Annotated[
        Sequence[DependentKeyShown], Field(description="The first 20 API keys whose digest needs the secret key.")
    ]
    can_be_removed: Annotated[
        bool, Field(description="True if nothing needs the key, so it can be removed from `GATEWAY_SECRET_KEYS`.")
    ]

    @classmethod
    def of(cls, key: SecretKeyState) -> Self:
        """Build the response from a key."""
        needed: dict[str, int] = {}
        for need in key.needs:
            needed[need.kind] = needed.get(need.kind, 0) + need.uses
        return cls(
            name=key.name,
            is_current=key.is_current,
            is_configured=key.is_configured,
            known_since=key.known_since,
            forgotten_at=key.forgotten_at,
            needed_by=needed,
            api_keys=[DependentKeyShown.of(one) for one in key.dependent],
            can_be_removed=key.can_be_removed,
        )


class SecretRotationShown(ResponseModel):
    """The last re-encryption."""

    key_name: Annotated[str, Field(description="The name of the secret key that re-encrypts all values.")]
    started_at: Annotated[datetime, Field(description="The time at which the re-encryption started.")]
    finished_at: Annotated[
        datetime | None, Field(description="The time at which the re-encryption ended; null while it is running.")
    ]
    tenants_done: Annotated[int, Field(description="The number of tenants whose values are re-encrypted.")]
    values_done: Annotated[int, Field(description="The number of re-encrypted values.")]
    unreadable: Annotated[
        int, Field(description="The number of values that no configured secret key decrypts; they are left unchanged.")
    ]
    fault: Annotated[str | None, Field(description="The reason for a delay; null if there is none.")]

    @classmethod
    def of(cls, state: RotationState) -> Self:
        """Build the response from the state."""
        return cls(**{name: getattr(state, name) for name in cls.model_fields})


class ReplicaShown(ResponseModel):
    """A running replica and the names of its secret keys, the first of which encrypts new values."""

    replica: Annotated[str, Field(description="The random id of the process.")]
    secret_keys: Annotated[
        Sequence[str], Field(description="The names of the keys, in the order of `GATEWAY_SECRET_KEYS` on the replica.")
    ]


class SecretKeysShown(ResponseModel):
    """The secret keys of the installation, the values that need them, and the last re-encryption."""

    keys: Annotated[Sequence[SecretKeyShown], Field(description="All secret keys that were ever configured.")]
    unmarked_api_keys: Annotated[
        int,
        Field(
            description="The number of API keys that were not used since an earlier release made their digest; each "
            "may need any older secret key."
        ),
    ]
    unmarked: Annotated[Sequence[DependentKeyShown], Field(description="The first 20 of those API keys.")]
    rotation: Annotated[SecretRotationShown | None, Field(description="The last re-encryption; null: there was none.")]
    replicas: Annotated[Sequence[ReplicaShown], Field(description="The replicas that reported in the last minute.")]

    @classmethod
    def of(cls, state: SecretKeysState) -> Self:
        """Build the response from the state."""
        return cls(
            keys=[SecretKeyShown.of(key) for key in state.keys],
            unmarked_api_keys=state.unmarked,
            unmarked=[DependentKeyShown.of(key) for key in state.unmarked_keys],
            rotation=None if state.rotation is None else SecretRotationShown.of(state.rotation),
            replicas=[ReplicaShown(replica=one.replica, secret_keys=one.names) for one in state.replicas],
        )
