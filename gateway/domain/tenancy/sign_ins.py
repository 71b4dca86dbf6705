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
    """Expiry of the access token, in seconds since 1970."""
    refresh_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """One sign-in; `claims` were received at the sign-in, or at the last refresh of its tokens (`checked_at`)."""

    id: SignInId
    issuer: IssuerId
    person: KeyId
    claims: IdentityClaims
    requested_scopes: frozenset[str]
    created_at: datetime
    checked_at: datetime
    session_ends_at: datetime
    """Expiry of the browser session that the sign-in started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedInPerson:
    """A person, and the valid sign-in and issuer behind the person's browser session or grant."""

    issuer: Issuer
    sign_in: SignIn
    person: Key
