"""Sign-ins of people with the gateway's own client at their issuer: the claims, and the tokens from the issuer."""

from dataclasses import dataclass, field
from datetime import datetime

from gateway.domain.identifiers import IssuerId, KeyId, SignInId
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer
from gateway.domain.tenancy.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTokens:
    """The tokens of one sign-in. They are sent only to endpoints of the issuer that issued them."""

    access_token: str = field(repr=False)
    access_ends_at: float
    """Seconds since 1970."""
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in. `claims` are those of the last check: the sign-in itself, or a refresh of its tokens."""

    id: SignInId
    issuer: IssuerId
    person: KeyId
    claims: IdentityClaims
    requested_scopes: frozenset[str]
    created_at: datetime
    checked_at: datetime
    session_ends_at: datetime
    """The end of the browser session that began with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInPerson:
    """A person with the sign-in that is valid for a browser session or a grant, and its issuer."""

    issuer: Issuer
    sign_in: SignIn
    person: Key
