"""Clients of the authorization server, consents of people, and the grants under which tokens are issued."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import ConsentId, KeyId, SignInId
from gateway.domain.members.formats import PRINTABLE
from gateway.domain.members.markers import About, Check, Form, Length, Option, Setter, Shape
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.tenancy.redirect_uris import MAX_REDIRECT_URIS, MAX_URI_LENGTH, check_own


class ClientKind(StrEnum):
    """Kind of a client, by its registration at the authorization server."""

    DOCUMENT = "document"
    """Described by a client ID metadata document, at the URL that is the client's id."""
    REGISTERED = "registered"
    """Registered by an administrator."""
    DYNAMIC = "dynamic"
    """The client registered itself (RFC 7591)."""


class GrantState(StrEnum):
    """State of a grant; tokens are issued only under an active grant."""

    ACTIVE = "active"
    ENDED = "ended"
    """Expired: unused for too long, or at its maximum lifetime."""
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientStatus:
    """The origin of a client, and its last use."""

    kind: Annotated[
        ClientKind,
        About("`registered`: by an administrator; `dynamic`: by the client itself."),
        Shape.LISTED,
    ] = ClientKind.REGISTERED
    used_at: Annotated[
        Omitted[datetime | None],
        About("The last time at which a person authorized the client; null if none did."),
        Shape.LISTED,
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    """A client of the authorization server; `name` is chosen by the client, unless an administrator registered it."""

    id: str
    name: Annotated[
        str,
        Length(least=1, most=200),
        Form(PRINTABLE),
        About("The name on the consent page."),
        Option(is_argument=True),
        Shape.LISTED,
    ]
    redirect_uris: Annotated[
        tuple[Annotated[str, Length(least=1, most=MAX_URI_LENGTH), Check(check_own)], ...],
        Length(least=1, most=MAX_REDIRECT_URIS),
        About("The exact redirect URIs; at 127.0.0.1, [::1] and localhost, the port is ignored."),
        Option(name="redirect-uri", metavar="URI"),
        Shape.LISTED,
    ]
    confidential: Annotated[
        bool,
        About("True for a client that keeps a secret, which only its creation and rotation return."),
        Setter.CREATION,
        Shape.LISTED,
    ] = False
    secret: Omitted[bytes | None] = field(default=None, repr=False)
    """A digest of the client's secret; None for a client without one."""
    created_at: datetime
    version: int = 1
    status: ClientStatus = ClientStatus()

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

    `id` is also the credential id of its access tokens. So their callers, streams and tasks end in the same way as
    those of a key.
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
    """Time of the last token that was issued under the grant."""
    idle_ends_at: datetime
    """Expiry of the grant if no further token is issued."""
    ends_at: datetime
    revoked_at: datetime | None = None
    revoked_for: str | None = None
    thumbprint: str | None = None
    """Thumbprint of the client's key to which the refresh tokens are bound; None if they are bound to none."""
    version: int = 1

    @property
    def state(self) -> GrantState:
        """The current state of the grant."""
        if self.revoked_at is not None:
            return GrantState.REVOKED
        is_ended = min(self.idle_ends_at, self.ends_at) <= datetime.now(UTC)
        return GrantState.ENDED if is_ended else GrantState.ACTIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSecrets:
    """The digests of a grant's code and refresh tokens, and the challenge for the code's verifier.

    A refresh token contains the secret of its family and its own secret. `refresh` replaced `former_refresh` at
    `rotated_at`.
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
    """Changes of a grant when tokens are issued. `renewed` is None if the refresh token does not change.

    `before` is the digest of the replaced refresh token; None for the first tokens of the grant.
    """

    grant: Grant
    renewed: GrantSecrets | None
    before: bytes | None = field(repr=False)
