"""Clients of the authorization server, consents of people, and the grants under which tokens are issued."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import ConsentId, KeyId, SignInId
from gateway.domain.members.formats import PRINTABLE
from gateway.domain.members.markers import About, Check, Form, Length, Option, Setter, Shape, ShownAs, StoredAs
from gateway.domain.members.secret import SecretStatus
from gateway.domain.tenancy.limits import MAX_REDIRECT_URI_LENGTH, MAX_REDIRECT_URIS
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.tenancy.redirect_uris import check_own


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
class ClientStatus(SecretStatus):
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
        tuple[Annotated[str, Length(least=1, most=MAX_REDIRECT_URI_LENGTH), Check(check_own)], ...],
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


_Subject = Annotated[str, About("The subject of the person in the tenant."), Shape.LISTED]
_Client = Annotated[str, ShownAs("client_id"), About("The id of the client.")]
_ClientName = Annotated[str, About("The client's name at the time of the person's decision."), Shape.LISTED]
_Resource = Annotated[str, About("The MCP URL for which the tokens are valid.")]
_Scopes = Annotated[tuple[str, ...], About("The scopes of the tokens.")]
_CreatedAt = Annotated[datetime, About("The time of creation.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """A person's permission for a client to receive tokens for a resource."""

    id: Annotated[ConsentId, About("The id; it never changes."), Shape.LISTED]
    person: Annotated[KeyId, StoredAs("person_id")]
    subject: _Subject
    client: Annotated[_Client, Shape.LISTED]
    client_name: _ClientName
    redirect_host: Annotated[
        str,
        About("The host, the local machine or the URI scheme that receives authorization codes."),
        Shape.LISTED,
    ]
    resource: Annotated[_Resource, Shape.LISTED]
    scopes: _Scopes
    created_at: Annotated[_CreatedAt, Shape.LISTED]
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A grant: one authorization of a client by a person, with the tokens that were issued under it."""

    id: Annotated[KeyId, About("The id; it never changes."), Shape.LISTED]
    """Also the credential id of its access tokens, so that their callers, streams and tasks end as those of a key."""
    person: Annotated[KeyId, StoredAs("person_id")]
    subject: _Subject
    sign_in: Annotated[SignInId, StoredAs("sign_in_id")]
    client: _Client
    client_name: _ClientName
    redirect_uri: Annotated[str, About("The redirect URI that received the authorization code.")]
    resource: _Resource
    profile: Annotated[str, About("The profile of the resource."), Shape.LISTED]
    scopes: _Scopes
    created_at: _CreatedAt
    used_at: Annotated[datetime | None, About("The last time at which a token was issued."), Shape.LISTED] = None
    idle_ends_at: Annotated[datetime, About("The time at which the grant ends if it is not used before.")]
    ends_at: Annotated[datetime, About("The time at which the grant ends even if it is used."), Shape.LISTED]
    revoked_at: Annotated[datetime | None, About("The time of revocation; null if it is not revoked.")] = None
    revoked_for: Annotated[str | None, About("The reason for the revocation, or its author.")] = None
    thumbprint: Annotated[
        str | None,
        About("The thumbprint of the client's key to which refresh tokens are bound (DPoP); null if none."),
    ] = None
    version: int = 1

    @property
    def state(self) -> Annotated[GrantState, About("`active`, `ended` or `revoked`."), Shape.LISTED]:
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
