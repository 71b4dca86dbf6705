"""People, and their sign-ins with the gateway's own client at their issuer: the claims, and the issuer's tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Self

from gateway.domain.identifiers import IssuerId, KeyId, SignInId
from gateway.domain.members.markers import About, Shape, StoredAs
from gateway.domain.tenancy.issuers import IdentityClaims, Issuer
from gateway.domain.tenancy.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person who signed in with an access token, or was denied before."""

    id: Annotated[KeyId, About("The id; it never changes."), Shape.LISTED]
    name: Annotated[str, About("The person's subject at the issuer.")]
    subject: Annotated[str, About("The person's subject in the tenant: the issuer's name and `name`."), Shape.LISTED]
    issuer: Annotated[str, About("The id of the issuer.")]
    created_at: Annotated[datetime, About("The time of the first sign-in, or of a denial before it."), Shape.LISTED]
    active_until: Annotated[
        datetime | None,
        About("The time until which tasks of the person continue without a token."),
        Shape.LISTED,
    ]
    denied_at: Annotated[
        datetime | None, About("The time at which access was denied; null if access is allowed."), Shape.LISTED
    ]
    keys_made: Annotated[
        tuple[KeyId, ...],
        About("Valid keys of other subjects that the person made; a denial does not end them."),
    ]
    version: int

    @classmethod
    def of(cls, stored: Key, keys: Sequence[Key]) -> Self:
        """The person of a row, with the keys among these that the person made."""
        principal = f"user:{stored.principal}"
        return cls(
            id=stored.id,
            name=stored.name,
            subject=stored.principal,
            issuer=stored.issuer or "",
            created_at=stored.created_at,
            active_until=stored.expires_at,
            denied_at=stored.revoked_at,
            keys_made=tuple(key.id for key in keys if principal in key.makers and key.subject != stored.subject),
            version=stored.version,
        )


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
    issuer: Annotated[IssuerId, StoredAs("issuer_id")]
    person: Annotated[KeyId, StoredAs("person_id")]
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
