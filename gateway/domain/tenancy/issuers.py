"""Issuers: the authorization servers whose access tokens a tenant accepts, and whom of their users it admits."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from gateway.domain.identifiers import IssuerId, KeyId, TenantId, crockford

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signature algorithms (RFC 7518, RFC 8037) that an issuer may use; none of them has a shared secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRule:
    """Admits the people to whom every given condition applies; without a condition, all of the issuer's users."""

    group: str | None = None
    scope: str | None = None
    """A scope of the access token."""
    subject: str | None = None
    profiles: tuple[str, ...] | None = None
    """The profiles at which they are admitted; None: all."""

    def admits(self, *, subject: str, groups: frozenset[str], scopes: frozenset[str], profile: str) -> bool:
        """True if the rule applies to a person at a profile."""
        return (
            self.group in {None, *groups}
            and self.scope in {None, *scopes}
            and self.subject in {None, subject}
            and (self.profiles is None or profile in self.profiles)  # guard: issuer-rule-profiles
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An authorization server whose access tokens a tenant accepts.

    `url` is the issuer identifier (`iss`), `jwks_url` the place of its signing keys. `audiences` are accepted besides
    the URL for which a token is used. A claim is a name, or a JSON Pointer into the claims.
    """

    id: IssuerId
    name: str
    url: str
    jwks_url: str
    audiences: tuple[str, ...]
    algorithms: tuple[str, ...]
    subject_claim: str
    groups_claim: str
    rules: tuple[AdmissionRule, ...]
    max_lifetime_s: int
    """The longest time for which a token is accepted, from its `iat`."""
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime

    def subject_of(self, subject: str) -> str:
        """The subject of a person in the tenant; no key's default subject has a colon."""
        return f"{self.name}:{subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantIssuers:
    """The enabled issuers of a tenant."""

    tenant: TenantId
    issuers: tuple[Issuer, ...]


def person_id(tenant: TenantId, issuer: IssuerId, subject: str) -> KeyId:
    """The id of a person, under which the person is stored like a key: the same at every sign-in."""
    digest = hashlib.sha256("\0".join((tenant, issuer, subject)).encode()).digest()
    return KeyId(f"key_{crockford(digest)}")
