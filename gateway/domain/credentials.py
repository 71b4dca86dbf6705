"""Named credentials of a tenant without their secrets, and their identification of a request's caller."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from gateway.domain.identifiers import CredentialId, IssuerId
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A named credential for declared handlers; `field` is the header or query parameter it fills.

    The gateway sends it only to `origins`, regardless of the handler's declaration.
    """

    id: CredentialId
    name: str
    place: CredentialLocation
    field: str
    origins: tuple[str, ...]
    version: int
    created_at: datetime
    updated_at: datetime
    delegation: Delegation | None = None
    """None for a shared credential."""
    reference: SecretReference | None = None
    """The reference to the secret in an external store; None if it is stored here."""

    @property
    def kind(self) -> CredentialKind:
        """The kind of identity, derived from `delegation`."""
        match self.delegation:
            case None:
                return CredentialKind.SHARED
            case SignedAssertion():
                return CredentialKind.ASSERTION
            case TokenExchange():
                return CredentialKind.EXCHANGE
            case AccountTerms():
                return CredentialKind.USER


def terms_digest(terms: AccountTerms, place: str, field: str, origins: Sequence[str]) -> str:
    """Digest of the destinations of account tokens: the client's endpoints, and the origins of requests.

    An account is valid only for the terms under which its user connected it.
    """
    parts = (msgspec.structs.asdict(terms), place, field, sorted(origins))
    return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=16).hexdigest()
