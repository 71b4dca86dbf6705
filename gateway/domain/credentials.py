"""Named credentials of a tenant without their secrets, and how a request with one names the caller."""

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
    """Kind of the identity that an upstream sees: one for all callers, or the caller's, by exchange or assertion."""

    SHARED = "shared"
    EXCHANGE = "exchange"
    ASSERTION = "assertion"


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


Delegation = SignedAssertion | TokenExchange
"""The way in which a credential names the caller."""

AUTHORIZATION = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCredential:
    """A named credential for declared handlers; `field` is the header or query parameter it fills.

    The gateway sends it only to `origins`, whatever a handler declares.
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
    """The place of the secret in an outside store; None if it is stored here."""

    @property
    def kind(self) -> CredentialKind:
        """The kind."""
        if self.delegation is None:
            return CredentialKind.SHARED
        return CredentialKind.ASSERTION if isinstance(self.delegation, SignedAssertion) else CredentialKind.EXCHANGE
