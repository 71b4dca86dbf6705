"""Issuers: the authorization servers whose access tokens a tenant accepts, and the rules that admit their users."""

import hashlib
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, get_args

from gateway.domain.identifiers import IssuerId, KeyId, TenantId, crockford
from gateway.domain.members.formats import HOST, LABEL, NAME, PRINTABLE, SCOPE
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.domain.members.markers import About, Bounds, Check, Form, Length, Setter, Shape, ShownAs
from gateway.domain.members.secret import SecretText
from gateway.domain.members.values import Url, check_url_if_any
from gateway.domain.tenancy.keys import Key, KeySecret, Scope
from gateway.domain.tenancy.limits import MAX_GRANT_S, MAX_INTROSPECTION_CACHE_S, MAX_SUBJECT_LENGTH
from gateway.domain.tenancy.principals import pack_claims
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.tenancy.secret_references import SecretReference

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signature algorithms (RFC 7518, RFC 8037) that an issuer may use; none of them has a shared secret."""
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)

Claim = Annotated[str, Length(least=1, most=200), Form(PRINTABLE)]
"""A name of a claim or a JSON Pointer, or a value that a claim must have."""
_EMPTY_OR_URL = Annotated[str, Length(most=MAX_URL_LENGTH), Check(check_url_if_any)]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityClaims:
    """Claims of an issuer about a person; `subject` is spelled as in the token."""

    subject: str
    groups: frozenset[str]
    scopes: frozenset[str]
    has_all_groups: bool = True
    """False if the token contains only some of the person's groups, or only a reference to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRule:
    """Rule that admits people who match all of its set conditions; without a condition, all users of the issuer."""

    group: Annotated[Claim | None, About("A group of the person; null means any.")] = None
    scope: Annotated[Claim | None, About("A scope of the token; null means any.")] = None
    subject: Annotated[Claim | None, About("The person's subject at the issuer; null means any.")] = None
    profiles: Annotated[
        tuple[Annotated[str, Form(LABEL)], ...] | None,
        Length(least=1, most=100),
        About("The profiles to which these people are admitted; null means all."),
    ] = None

    def concerns(self, profile: str | None) -> bool:
        """True if the rule admits people to the profile; with None, to any profile."""
        return profile is None or self.profiles is None or profile in self.profiles  # guard: issuer-rule-profiles

    def admits(self, person: IdentityClaims, profile: str | None) -> bool:
        """True if the rule admits the person to the profile; with None, to any profile."""
        return (
            self.group in {None, *person.groups}
            and self.scope in {None, *person.scopes}
            and self.subject in {None, person.subject}
            and self.concerns(profile)
        )


_STORED_ELSEWHERE = About(
    "The location of the client's secret in an external store, instead of `client_secret`; null for a secret that is "
    "stored here."
)
_GRANT_BOUNDS = Bounds(least=300, most=MAX_GRANT_S)
_Parameters = Annotated[
    Mapping[str, str], ShownAs("parameters"), About("Further parameters of authorization requests.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInClient:
    """The gateway's own client at the issuer, without its secret."""

    client_id: Annotated[str, Length(least=1, most=500), Form(PRINTABLE), Shape.RECEIVER, About("The client's id.")]
    client_secret_reference: Annotated[SecretReference | None, _STORED_ELSEWHERE] = None
    scopes: Annotated[
        tuple[Annotated[str, Length(least=1, most=200), Form(SCOPE)], ...],
        Length(least=1, most=20),
        About("The scopes that the client requests; they must include `openid`."),
    ] = ("openid",)
    parameters: tuple[tuple[str, str], ...] = ()
    authorization_url: str = ""
    """Copied from the issuer's metadata, as the other endpoints; empty until the issuer is enabled."""
    token_url: str = ""
    userinfo_url: str | None = None
    names_issuer: bool = False
    """True if authorization responses have the parameter `iss` (RFC 9207)."""
    registration: Annotated[bool, About("True if MCP clients may register themselves.")] = False
    client_hosts: Annotated[
        tuple[Annotated[str, Length(least=1, most=253), Form(HOST)], ...] | None,
        Length(most=100),
        About("The hosts from which client metadata documents are accepted; null means all."),
    ] = None
    grant_idle_s: Annotated[int, _GRANT_BOUNDS, About("Seconds after which an unused grant of an MCP client ends.")] = (
        14 * 86_400
    )
    grant_max_s: Annotated[int, _GRANT_BOUNDS, About("Maximum lifetime of a grant of an MCP client, in seconds.")] = (
        MAX_GRANT_S
    )
    max_unchecked_s: Annotated[
        int, _GRANT_BOUNDS, About("Seconds for which a sign-in is valid if the issuer returned no refresh token.")
    ] = 12 * 3600

    @property
    def named_parameters(self) -> _Parameters:
        """The further parameters by name."""
        return dict(self.parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionClient:
    """The gateway's client at the issuer's introspection endpoint, without its secret."""

    stem: ClassVar[str] = "Introspection"
    client_id: Annotated[str, Length(least=1, most=500), Form(PRINTABLE), Shape.RECEIVER, About("The client's id.")]
    client_secret_reference: Annotated[SecretReference | None, _STORED_ELSEWHERE] = None
    given_url: Annotated[
        Url | None,
        Shape.RECEIVER,
        ShownAs("url"),
        About("The configured endpoint; null: the endpoint of the issuer's metadata."),
    ] = None
    url: str = ""
    """The endpoint in use; empty until the issuer is enabled."""
    client_auth: Annotated[
        Literal["basic", "post"],
        About("Location of the client's id and secret: `basic` (header) or `post` (body)."),
    ] = "basic"
    tokens: Annotated[
        Literal["opaque", "jwt", "all"], About("The tokens that are introspected: `opaque`, `jwt` or `all`.")
    ] = "opaque"
    """The signature of a JWT is verified first."""
    cache_s: Annotated[
        int,
        Bounds(least=1, most=MAX_INTROSPECTION_CACHE_S),
        About("Seconds for which an introspection response is cached."),
    ] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerStatus:
    """The endpoints of an issuer's clients; null without the client, empty until the issuer is enabled."""

    redirect_uri: Annotated[
        str | None, About("The redirect URI to register for `sign_in`; a path if `GATEWAY_PUBLIC_URL` is unset.")
    ] = None
    authorization_url: Annotated[str | None, About("The authorization endpoint.")] = None
    token_url: Annotated[str | None, About("The token endpoint.")] = None
    introspection_url: Annotated[str | None, About("The effective introspection endpoint.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An authorization server whose access tokens a tenant accepts.

    `url` is the issuer identifier (`iss`), `jwks_url` the URL of its signing keys. `audiences` are accepted in addition
    to the URL for which a token is used. A claim is a name, or a JSON Pointer into the claims.
    """

    id: IssuerId
    name: str
    url: Annotated[
        Url, About("The issuer identifier, equal to `iss` in the issuer's tokens."), Setter.CREATION, Shape.LISTED
    ]
    jwks_url: Annotated[
        _EMPTY_OR_URL, About("The URL of the issuer's signing keys; empty: `jwks_uri` of the metadata.")
    ] = ""
    audiences: Annotated[
        tuple[Annotated[str, Length(least=1, most=500), Form(PRINTABLE)], ...],
        Length(most=10),
        About("Accepted audiences in addition to the URL of the tenant; set only by the operator."),
    ] = ()
    algorithms: Annotated[
        tuple[Algorithm, ...],
        Length(least=1, most=len(ALGORITHMS)),
        About("The accepted signature algorithms."),
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    subject_claim: Annotated[Claim, About("The claim that names the person: a name or a JSON Pointer.")] = "sub"
    groups_claim: Annotated[Claim, About("The claim with the person's groups: a name or a JSON Pointer.")] = "groups"
    rules: Annotated[
        tuple[AdmissionRule, ...],
        Length(least=1, most=100),
        About("The rules that admit users; a user needs to match one."),
    ]
    max_lifetime_s: Annotated[
        int, Bounds(least=60, most=86_400), About("Maximum age of a token in seconds, from its `iat`.")
    ] = 3600
    enabled: Annotated[bool, About("False refuses the tokens of the issuer."), Shape.LISTED] = True
    version: int
    created_at: datetime
    updated_at: datetime
    sign_in: SignInClient | None = None
    """The gateway's sign-in client; None if clients request tokens from the issuer itself."""
    introspection: IntrospectionClient | None = None
    """The gateway's introspection client; None means no introspection: only JWTs are accepted."""
    requires_dpop: Annotated[
        bool,
        About(
            "True: only tokens that are bound to a key of the client (DPoP) are accepted; with `sign_in`, the gateway "
            "issues no others."
        ),
    ] = False
    access_scopes: Omitted[tuple[str, ...]] = ()
    """The issuer's scopes that access rules name; set by the lookup of a tenant's enabled issuers, not stored."""

    @property
    def state(self) -> str:
        """A name of the issuer as it is now: each change gives it another, also its deletion and second creation."""
        return f"{self.id}/{self.version}"

    def introspects(self, kind: Literal["opaque", "jwt"]) -> bool:
        """True if tokens of this type are introspected."""
        return self.introspection is not None and self.introspection.tokens in {kind, "all"}

    def admits(self, person: IdentityClaims, profile: str | None = None) -> bool:
        """True if a rule admits the person to the profile; with None, to any profile."""
        return any(rule.admits(person, profile) for rule in self.rules)  # guard: issuer-rules

    def scopes_for(self, person: IdentityClaims, profile: str | None) -> list[str]:
        """The scopes of rules that would admit the person, if the token had the scope."""
        rules = [rule for rule in self.rules if rule.scope is not None]
        return sorted({rule.scope for rule in rules if rule.scope and rule.admits(_with(person, rule.scope), profile)})

    @property
    def named_scopes(self) -> frozenset[str]:
        """The scopes that a client can use: those that a rule of the issuer or an access rule names."""
        return self.scopes_at(None)

    def scopes_at(self, profile: str | None) -> frozenset[str]:
        """The scopes that have an effect at a profile; with None, at any profile."""
        rules = [rule for rule in self.rules if rule.concerns(profile)]
        return frozenset({*self.access_scopes, *(rule.scope for rule in rules if rule.scope is not None)})

    def granted_scopes(self, person: IdentityClaims, requested: Collection[str] = ()) -> tuple[str, ...]:
        """The scopes of a client's token: of those that the issuer granted, the requested ones that a rule names.

        A client that requests none gets all that rules name (RFC 6749 section 3.3).
        """
        granted = self.named_scopes & person.scopes  # guard: granted-scopes
        return tuple(sorted(granted.intersection(requested) if requested else granted))

    def admits_client(self, person: IdentityClaims, profile: str, requested: Collection[str]) -> bool:
        """True if a rule admits the person to the profile with the scopes of a client's token alone."""
        return self.admits(replace(person, scopes=frozenset(self.granted_scopes(person, requested))), profile)

    def callback_path(self, slug: str) -> str:
        """The path of the redirect URI that the issuer's administrator registers for the gateway's client.

        The path is different for each issuer, so the response of one issuer cannot be used for another one (RFC 9700
        section 4.4.2).
        """
        return f"/t/{slug}/sign-in/{self.name}/callback"

    def packed_groups(self, person: IdentityClaims) -> bytes | None:
        """The person's groups as `Principal` stores them; None if some may be missing."""
        if not person.has_all_groups:  # guard: access-missing-groups
            return None
        return pack_claims(f"{self.name}:{group}" for group in person.groups)

    def packed_scopes(self, person: IdentityClaims) -> bytes:
        """The scopes of the person's token as `Principal` stores them."""
        return pack_claims(f"{self.name}:{scope}" for scope in person.scopes)  # guard: access-scope-issuer

    def subject_of(self, subject: str) -> str:
        """The person's subject in the tenant; it contains a colon, which no default subject of a key has."""
        return f"{self.name}:{subject}"


_Secret = Annotated[
    SecretText | None,
    About("The client's secret. Without it and a reference, the stored secret or reference is kept."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedSignIn(SignInClient):
    """The gateway's own client at the issuer. With it, the gateway signs people in and issues tokens to MCP clients."""

    client_secret: _Secret = None
    given_parameters: Annotated[
        Mapping[
            Annotated[str, Length(least=1, most=100), Form(NAME)],
            Annotated[str, Length(least=1, most=500), Form(PRINTABLE)],
        ],
        Length(most=10),
        ShownAs("parameters"),
        About("Further parameters of authorization requests."),
    ] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedIntrospection(IntrospectionClient):
    """The gateway's client at the issuer's introspection endpoint (RFC 7662)."""

    client_secret: _Secret = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedIssuer(Issuer):
    """An issuer with the gateway's clients at it."""

    sign_in: Annotated[
        ManagedSignIn | None,
        About("The gateway's client at the issuer; null: clients get tokens from the issuer itself."),
    ] = None
    introspection: Annotated[
        ManagedIntrospection | None,
        About("The gateway's client at the introspection endpoint; null: only JWTs are accepted."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantIssuers:
    """The enabled issuers of a tenant."""

    tenant: TenantId
    issuers: tuple[Issuer, ...]


def _with(person: IdentityClaims, scope: str) -> IdentityClaims:
    return replace(person, scopes=frozenset({scope}))


def is_subject(text: str) -> bool:
    """True if an issuer can name a person so."""
    return 0 < len(text) <= MAX_SUBJECT_LENGTH and text.isprintable() and text == text.strip()


def person_id(tenant: TenantId, issuer: IssuerId, subject: str) -> KeyId:
    """The id of a person's stored row, which has the form of a key; derived, so equal at every sign-in."""
    digest = hashlib.sha256("\0".join((tenant, issuer, subject)).encode()).digest()
    return KeyId(f"key_{crockford(digest)}")


def new_person(tenant: TenantId, issuer: Issuer, subject: str, *, ends_at: datetime) -> Key:
    """The row of a person at the first sign-in; the person's tasks may continue without a token until `ends_at`."""
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
