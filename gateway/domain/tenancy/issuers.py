"""Issuers: the authorization servers whose access tokens a tenant accepts, and the rules that admit their users."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from gateway.domain.identifiers import IssuerId, KeyId, TenantId, crockford
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.domain.tenancy.principals import pack_groups

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signature algorithms (RFC 7518, RFC 8037) that an issuer may use; none of them has a shared secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityClaims:
    """A person as described by an issuer; the subject has the issuer's spelling."""

    subject: str
    groups: frozenset[str]
    scopes: frozenset[str]
    has_all_groups: bool = True
    """False if the token names only some of the person's groups, or refers to another place for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRule:
    """Admits people who match every given condition; without a condition, all users of the issuer."""

    group: str | None = None
    scope: str | None = None
    """A scope of the access token."""
    subject: str | None = None
    profiles: tuple[str, ...] | None = None
    """The profiles at which they are admitted; None means all."""

    def admits(self, person: IdentityClaims, profile: str | None) -> bool:
        """True if the rule applies to a person at a profile; with None, at any profile."""
        return (
            self.group in {None, *person.groups}
            and self.scope in {None, *person.scopes}
            and self.subject in {None, person.subject}
            and (profile is None or self.profiles is None or profile in self.profiles)  # guard: issuer-rule-profiles
        )


MAX_GRANT_S = 90 * 86_400
"""Maximum lifetime of a grant; a client that registered itself is kept for as long after its last use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInClient:
    """The gateway's own client at an issuer, with which it signs people in (OpenID Connect Core 1.0 section 3.1).

    The endpoints are those of the issuer's metadata when the client was stored; empty until the issuer is enabled. The
    client's secret is stored separately, sealed.
    """

    client_id: str
    scopes: tuple[str, ...] = ("openid",)
    parameters: tuple[tuple[str, str], ...] = ()
    """Further parameters of authorization requests."""
    authorization_url: str = ""
    token_url: str = ""
    userinfo_url: str | None = None
    names_issuer: bool = False
    """True if authorization responses have the parameter `iss` (RFC 9207)."""
    registration: bool = False
    """True if MCP clients may register themselves (RFC 7591)."""
    client_hosts: tuple[str, ...] | None = None
    """Hosts of the metadata documents of clients that people may use; None: all."""
    grant_idle_s: int = 14 * 86_400
    """Seconds after which an unused grant ends."""
    grant_max_s: int = MAX_GRANT_S
    """Seconds after which each grant ends."""
    max_unchecked_s: int = 12 * 3600
    """Seconds for which a sign-in stays valid that the gateway cannot check again, because there is no refresh
    token.
    """


MAX_INTROSPECTION_CACHE_S = 60
"""The longest time for which the issuer's answer about a token counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionClient:
    """The gateway's client at an issuer's introspection endpoint (RFC 7662).

    The client's secret is stored apart, sealed for the endpoint.
    """

    client_id: str
    given_url: str | None = None
    """The endpoint that the administrator gave; None: the one of the issuer's metadata."""
    url: str = ""
    """The endpoint; empty until the issuer is enabled."""
    client_auth: Literal["basic", "post"] = "basic"
    """The place of the client's id and secret: the Authorization header, or the body."""
    tokens: Literal["opaque", "jwt", "all"] = "opaque"
    """The tokens about which the issuer is asked; a JWT is verified before."""
    cache_s: int = 30
    """Seconds for which an answer counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An authorization server whose access tokens a tenant accepts.

    `url` is the issuer identifier (`iss`), `jwks_url` the URL of its signing keys. `audiences` are accepted besides the
    URL for which a token is used. A claim is a name, or a JSON Pointer into the claims.
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
    """Maximum time for which a token is accepted, from its `iat`."""
    enabled: bool
    version: int
    created_at: datetime
    updated_at: datetime
    sign_in: SignInClient | None = None
    """The registration of clients; None if clients get tokens from the issuer itself."""
    introspection: IntrospectionClient | None = None
    """None: the issuer is not asked about tokens, and only JWTs are accepted."""

    def introspects(self, kind: Literal["opaque", "jwt"]) -> bool:
        """True if the issuer is asked about tokens of this kind."""
        return self.introspection is not None and self.introspection.tokens in {kind, "all"}

    def admits(self, person: IdentityClaims, profile: str | None = None) -> bool:
        """True if a rule admits the person at the profile; with None, at any profile."""
        return any(rule.admits(person, profile) for rule in self.rules)  # guard: issuer-rules

    def scopes_for(self, person: IdentityClaims, profile: str) -> list[str]:
        """The scopes, each of which would let a rule admit the person."""
        rules = [rule for rule in self.rules if rule.scope is not None]
        return sorted({rule.scope for rule in rules if rule.scope and rule.admits(_with(person, rule.scope), profile)})

    def callback_path(self, slug: str) -> str:
        """The path of the redirect URI that the issuer's administrator registers for the gateway's client.

        It belongs to this issuer alone, so a response of another issuer is not mistaken for one of this issuer (RFC
        9700 section 4.4.2).
        """
        return f"/t/{slug}/sign-in/{self.name}/callback"

    def packed_groups(self, person: IdentityClaims) -> bytes | None:
        """The groups of a person for a principal; None if some may be missing."""
        if not person.has_all_groups:  # guard: access-missing-groups
            return None
        return pack_groups(f"{self.name}:{group}" for group in person.groups)

    def subject_of(self, subject: str) -> str:
        """The subject of a person in the tenant; no key's default subject has a colon."""
        return f"{self.name}:{subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantIssuers:
    """The enabled issuers of a tenant."""

    tenant: TenantId
    issuers: tuple[Issuer, ...]


def _with(person: IdentityClaims, scope: str) -> IdentityClaims:
    return replace(person, scopes=frozenset({scope}))


def person_id(tenant: TenantId, issuer: IssuerId, subject: str) -> KeyId:
    """The id of a person, who is stored like a key; it is equal at every sign-in."""
    digest = hashlib.sha256("\0".join((tenant, issuer, subject)).encode()).digest()
    return KeyId(f"key_{crockford(digest)}")


def new_person(tenant: TenantId, issuer: Issuer, subject: str, *, ends_at: datetime) -> Key:
    """A person at the first sign-in; `ends_at` is the time until which tasks of the person continue without a token."""
    return Key(
        tenant=tenant,
        id=person_id(tenant, issuer.id, subject),
        name=subject,
        scopes=frozenset({Scope.MCP}),
        subject=issuer.subject_of(subject),
        profile=None,
        secret=KeySecret(digest=secrets.token_bytes(32)),  # the digest of no text, so the row is not a usable key
        created_at=datetime.now(UTC),
        expires_at=ends_at,
        revoked_at=None,
        version=1,
        issuer=issuer.id,
    )
