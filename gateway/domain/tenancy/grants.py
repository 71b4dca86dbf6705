"""Clients of the authorization server, consents of people, and the grants under which tokens are issued."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from gateway.domain.identifiers import ConsentId, KeyId, SignInId


class ClientKind(StrEnum):
    """The ways in which the authorization server knows a client."""

    DOCUMENT = "document"
    """By a client ID metadata document, at the URL that is the client's id."""
    REGISTERED = "registered"
    """Registered by an administrator."""
    DYNAMIC = "dynamic"
    """The client registered itself (RFC 7591)."""


class GrantState(StrEnum):
    """The states of a grant; tokens are issued under an active one."""

    ACTIVE = "active"
    ENDED = "ended"
    """Its time is over."""
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A client; `name` is its own choice, unless an administrator registered it."""

    id: str
    kind: ClientKind
    name: str
    redirect_uris: tuple[str, ...]
    secret: bytes | None = field(default=None, repr=False)
    """A digest of the client's secret; None for a client without one."""
    created_at: datetime
    used_at: datetime | None = None
    """The last time at which a person permitted it to act."""
    version: int = 1

    @property
    def is_confidential(self) -> bool:
        """True if the client authenticates with a secret."""
        return self.secret is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A person's permission for a client to receive tokens for a resource at one redirect host."""

    id: ConsentId
    person: KeyId
    subject: str
    client: str
    client_name: str
    redirect_host: str
    resource: str
    scopes: tuple[str, ...]
    created_at: datetime
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One authorization of a client by a person: its code, its refresh tokens, and the access tokens issued under it.

    Its id is that of the credential, so callers, streams and tasks of these tokens end in the same way as those of a
    key.
    """

    id: KeyId
    person: KeyId
    subject: str
    sign_in: SignInId
    client: str
    client_name: str
    redirect_uri: str
    resource: str
    profile: str
    scopes: tuple[str, ...]
    created_at: datetime
    used_at: datetime | None = None
    """The last time at which a token was issued."""
    idle_ends_at: datetime
    """The time at which it ends unless it is used before."""
    ends_at: datetime
    revoked_at: datetime | None = None
    revoked_for: str | None = None
    version: int = 1

    @property
    def state(self) -> GrantState:
        """The state now."""
        if self.revoked_at is not None:
            return GrantState.REVOKED
        is_ended = min(self.idle_ends_at, self.ends_at) <= datetime.now(UTC)
        return GrantState.ENDED if is_ended else GrantState.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSecrets:
    """The digests of a grant's code and refresh tokens, and the challenge for the code's verifier.

    A refresh token names its family and itself. `former_refresh` is the one that `refresh` replaced at `rotated_at`.
    """

    code: bytes = field(repr=False)
    code_challenge: str
    code_ends_at: datetime
    code_used_at: datetime | None = None
    family: bytes | None = field(default=None, repr=False)
    refresh: bytes | None = field(default=None, repr=False)
    former_refresh: bytes | None = field(default=None, repr=False)
    rotated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantFilter:
    """Filter for grants; all set members must match, and at least one is set."""

    id: str | None = None
    sign_in_id: SignInId | None = None
    person_id: KeyId | None = None
    client: str | None = None
    resource: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """An issue of tokens: the resulting grant, and its next digests, or None if its refresh token does not change.

    `before` is the digest of the refresh token that is replaced; None for the first tokens.
    """

    grant: Grant
    renewed: GrantSecrets | None
    before: bytes | None = field(repr=False)
