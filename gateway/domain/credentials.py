"""Named credentials of a tenant without their secrets, and their identification of a request's caller."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from gateway.domain.identifiers import CredentialId, IssuerId
from gateway.domain.members.formats import NAME, PRINTABLE, SCOPE
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.markers import About, Form, Length, Option, Shape
from gateway.domain.members.secret import SecretStatus, SecretText, UserName
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.tenancy.secret_references import SecretReference


class CredentialLocation(StrEnum):
    """Position of a credential in a request."""

    HEADER = "header"
    QUERY = "query"
    BEARER = "bearer"
    BASIC = "basic"


class CredentialKind(StrEnum):
    """Kind of the identity under which requests are sent: shared by all callers, or the caller's own.

    The caller's identity is an exchanged token, an assertion, or an account that each user has connected.
    """

    SHARED = "shared"
    EXCHANGE = "exchange"
    ASSERTION = "assertion"
    USER = "user"


class SignedAssertion(msgspec.Struct, frozen=True, kw_only=True, tag="assertion"):
    """Each request carries a JWT of the gateway (RFC 7519) for this audience, with tenant, subject and tool."""

    audience: str


class TokenExchange(msgspec.Struct, frozen=True, kw_only=True, tag="exchange"):
    """Each request carries a token that the issuer of the caller's access token returned in exchange for it (RFC 8693).

    `token_url` is the token endpoint in that issuer's metadata. The secret of the client is the credential's value.
    """

    issuer: IssuerId
    issuer_name: str
    token_url: str
    client_id: str
    audience: str | None = None
    scopes: tuple[str, ...] = ()


class AccountTerms(msgspec.Struct, frozen=True, kw_only=True, tag="user"):
    """Each request carries an access token of the account that the caller has connected (RFC 6749 section 4.1).

    The credential is the gateway's client at the upstream's authorization server; its value is the client's secret.
    """

    authorization_url: str
    token_url: str
    client_id: str
    revocation_url: str | None = None
    server: str | None = None
    """The issuer identifier of the authorization server; None if its endpoints were given."""
    names_issuer: bool = False
    """True if the server adds `iss` to its responses (RFC 9207)."""
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    """Further parameters of authorization requests."""


Delegation = SignedAssertion | TokenExchange | AccountTerms
"""The kinds of delegation with which a credential names the caller."""

AUTHORIZATION = "Authorization"


ENDPOINTS = ("authorization_url", "token_url", "revocation_url")
"""The endpoints of an authorization server: members of a credential, or found in the metadata of its server."""
_Label = Annotated[str, Length(least=1, most=200), Form(PRINTABLE)]
_Endpoint = Annotated[str, Length(least=1, most=MAX_URL_LENGTH), Form(PRINTABLE)]
_Parameters = Mapping[
    Annotated[str, Length(least=1, most=64), Form(NAME)], Annotated[str, Length(most=200), Form(PRINTABLE)]
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialStatus(SecretStatus):
    """The endpoints from the metadata of the issuer or server, read when the credential was stored."""

    authorization_url: Annotated[str | None, About("The authorization endpoint in use."), Shape.RECEIVER] = None
    token_url: Annotated[str | None, About("The token endpoint in use."), Shape.RECEIVER] = None
    revocation_url: Annotated[str | None, About("The revocation endpoint in use."), Shape.RECEIVER] = None
    redirect_uri: Annotated[
        Omitted[str | None], About("The redirect URI to register at the server; null for other kinds.")
    ] = None
    issuer: Annotated[str | None, Shape.RECEIVER] = None
    """The id of the issuer that exchanges tokens."""
    names_issuer: bool = False
    """True if the server adds `iss` to its responses (RFC 9207)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A named credential for declared handlers; the gateway sends it only to `origins`.

    An object that was read from the database has no secret.
    """

    id: CredentialId
    name: str
    kind: Annotated[
        CredentialKind,
        About(
            "The identity that the upstream sees. `shared`: one secret for all callers. `exchange`: a token that the"
            " issuer returns in exchange for the caller's access token. `assertion`: a JWT of the gateway that names"
            " the caller. `user`: a token of the account that each caller has connected."
        ),
        Shape.RECEIVER,
        Shape.LISTED,
    ] = CredentialKind.SHARED
    place: Annotated[
        CredentialLocation,
        About("The location in a request. `basic` takes `username` and `password`, the others `value`."),
        Shape.RECEIVER,
        Shape.LISTED,
    ]
    audience: Annotated[
        _Label | None,
        About("The audience of the token of an `exchange` or `assertion`; required for an `assertion`."),
    ] = None
    issuer: Annotated[_Label | None, About("The issuer that exchanges tokens."), Shape.RECEIVER] = None
    client_id: Annotated[
        _Label | None,
        About("The client id, for an `exchange` or accounts of users; `value` is the client secret."),
        Shape.RECEIVER,
    ] = None
    scopes: Annotated[
        tuple[Annotated[str, Length(least=1, most=200), Form(SCOPE)], ...],
        Length(most=50),
        About("The scopes that an `exchange`, or the connection of an account, requests."),
        Option(name="scope"),
    ] = ()
    server: Annotated[
        _Endpoint | None,
        About(
            "For accounts of users: the issuer identifier of the upstream's authorization server, whose metadata has"
            " the endpoints (RFC 8414)."
        ),
        Shape.RECEIVER,
    ] = None
    authorization_url: Annotated[
        _Endpoint | None, About("The authorization endpoint, for a server without metadata."), Shape.RECEIVER
    ] = None
    token_url: Annotated[
        _Endpoint | None, About("The token endpoint, for a server without metadata."), Shape.RECEIVER
    ] = None
    revocation_url: Annotated[
        _Endpoint | None, About("The revocation endpoint (RFC 7009), for a server without metadata."), Shape.RECEIVER
    ] = None
    parameters: Annotated[
        _Parameters,
        Length(most=10),
        About("Further parameters of authorization requests, such as `access_type`."),
        Option(name="parameter", is_map=True),
    ] = field(default_factory=dict[str, str])
    field: Annotated[
        _Label | None,
        About("The name of the header or query parameter, for the locations that need one."),
        Shape.RECEIVER,
        Shape.LISTED,
    ] = None
    value: Annotated[SecretText | None, About("The secret; not for `basic`."), Option(name="secret")] = None
    username: Annotated[UserName | None, About("The user name, for HTTP Basic.")] = None
    password: Annotated[SecretText | None, About("The password, for HTTP Basic.")] = None
    reference: Annotated[
        SecretReference | None,
        About("The location of the secret in an external store, instead of `value` or `password`."),
        Shape.ONE_VALUE,
        Shape.REFERENCE,
    ] = None
    origins: Annotated[
        tuple[Annotated[str, Length(least=1, most=300)], ...],
        Length(least=1, most=50),
        About("The only origins that receive the credential, such as https://api.example.com."),
        Option(name="origin"),
        Shape.RECEIVER,
        Shape.LISTED,
    ]
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: CredentialStatus = CredentialStatus()

    @property
    def delegation(self) -> Delegation | None:
        """The identification of a request's caller; None for a shared credential."""
        match self.kind:
            case CredentialKind.SHARED:
                return None
            case CredentialKind.ASSERTION:
                return SignedAssertion(audience=self.audience or "")
            case CredentialKind.EXCHANGE:
                return TokenExchange(
                    issuer=IssuerId(self.status.issuer or ""),
                    issuer_name=self.issuer or "",
                    token_url=self.status.token_url or "",
                    client_id=self.client_id or "",
                    audience=self.audience,
                    scopes=self.scopes,
                )
            case CredentialKind.USER:
                return AccountTerms(
                    authorization_url=self.status.authorization_url or "",
                    token_url=self.status.token_url or "",
                    client_id=self.client_id or "",
                    revocation_url=self.status.revocation_url,
                    server=self.server,
                    names_issuer=self.status.names_issuer,
                    scopes=self.scopes,
                    parameters=tuple(self.parameters.items()),
                )


def members_of_delegation(terms: Delegation | None) -> Mapping[str, object]:
    """The members of a credential that follow from its stored delegation, with their status."""
    match terms:
        case None:
            return {"kind": CredentialKind.SHARED}
        case SignedAssertion(audience=audience):
            return {"kind": CredentialKind.ASSERTION, "audience": audience}
        case TokenExchange(issuer=issuer, issuer_name=name, token_url=url):
            same = {each: getattr(terms, each) for each in ("audience", "client_id", "scopes")}
            status = CredentialStatus(issuer=issuer, token_url=url)
            return {"kind": CredentialKind.EXCHANGE, "issuer": name, "status": status, **same}
        case AccountTerms(server=server):
            same = {each: getattr(terms, each) for each in ("client_id", "scopes", "server")}
            found: dict[str, Any] = {each: getattr(terms, each) for each in ENDPOINTS}
            status = CredentialStatus(**found, names_issuer=terms.names_issuer)
            given = found if server is None else {}
            return {
                "kind": CredentialKind.USER,
                "parameters": dict(terms.parameters),
                "status": status,
                **same,
                **given,
            }


def terms_digest(terms: AccountTerms, place: str, field: str, origins: Sequence[str]) -> str:
    """Digest of the destinations of account tokens: the client's endpoints, and the origins of requests.

    An account is valid only for the terms under which its user connected it.
    """
    parts = (msgspec.structs.asdict(terms), place, field, sorted(origins))
    return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=16).hexdigest()


def connect_url(public_url: str, slug: str, name: str, page: str) -> str:
    """The URL of a page with which users connect accounts at a credential; `callback` is its redirect URI."""
    return f"{public_url}/t/{slug}/connect/{name}/{page}"
