"""Request models of issuers and of the people who sign in through them."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.lists import ByNameOrTime
from gateway.admin.requests.models import SecretText, Url
from gateway.admin.requests.primitives import SecretReferenceSent
from gateway.domain.members.formats import HOST, LABEL, NAME, PRINTABLE, SCOPE
from gateway.domain.tenancy.issuers import ALGORITHMS, MAX_GRANT_S, MAX_INTROSPECTION_CACHE_S
from gateway.web.models import GIVEN, Absent, BodyModel, ListQuery

Claim = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Condition = Annotated[str | Absent, GIVEN, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]

IssuerName = Annotated[str, Field(pattern=NAME, description="Unique in the tenant; the prefix of subjects.")]
IssuerUrl = Annotated[Url, Field(description="The issuer identifier, equal to `iss` in the issuer's tokens.")]
KeySetUrl = Annotated[
    Url, Field(description="The URL of the issuer's signing keys; default: `jwks_uri` of the metadata.")
]
Algorithms = Annotated[
    list[Algorithm],
    Field(min_length=1, max_length=len(ALGORITHMS), description="The accepted signature algorithms."),
]
Audiences = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE)]],
    Field(
        max_length=10, description="Accepted audiences in addition to the URL of the tenant; set only by the operator."
    ),
]
SubjectClaim = Annotated[Claim, Field(description="The claim that names the person: a name or a JSON Pointer.")]
GroupsClaim = Annotated[Claim, Field(description="The claim with the person's groups: a name or a JSON Pointer.")]
Lifetime = Annotated[int, Field(ge=60, le=86_400, description="Maximum age of a token in seconds, from its `iat`.")]
Enabled = Annotated[bool, Field(description="False refuses the tokens of the issuer.")]


class AdmissionRuleGiven(BodyModel):
    """A rule that admits people who match all of its conditions; a rule without conditions admits all people."""

    group: Annotated[Condition, Field(description="A group of the person.")] = None
    scope: Annotated[Condition, Field(description="A scope of the token.")] = None
    subject: Annotated[Condition, Field(description="The person's subject at the issuer.")] = None
    profiles: Annotated[
        list[Annotated[str, Field(pattern=LABEL)]] | Absent,
        GIVEN,
        Field(
            min_length=1,
            max_length=100,
            description="The profiles to which these people are admitted; absent means all.",
        ),
    ] = None


Rules = Annotated[
    list[AdmissionRuleGiven],
    Field(min_length=1, max_length=100, description="The rules that admit users; a user needs to match one."),
]


ClientSecret = Annotated[
    SecretText | Absent,
    GIVEN,
    Field(description="The client's secret. Without it and a reference, the stored secret or reference is kept."),
]
ClientSecretReference = Annotated[
    SecretReferenceSent | Absent,
    GIVEN,
    Field(description="The location of the secret in an external store, instead of `client_secret`."),
]


class SignInClientGiven(BodyModel):
    """The gateway's own client at the issuer. With it, the gateway signs people in and issues tokens to MCP clients."""

    client_id: Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE, description="The client's id.")]
    client_secret: ClientSecret = None
    client_secret_reference: ClientSecretReference = None
    scopes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200, pattern=SCOPE)]],
        Field(min_length=1, max_length=20, description="The scopes to request; they must include `openid`."),
    ] = Field(default_factory=lambda: ["openid"])
    parameters: Annotated[
        dict[
            Annotated[str, Field(min_length=1, max_length=100, pattern=NAME)],
            Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE)],
        ],
        Field(max_length=10, description="Further parameters of authorization requests."),
    ] = Field(default_factory=dict[str, str])
    registration: Annotated[bool, Field(description="True permits MCP clients to register themselves.")] = False
    client_hosts: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=253, pattern=HOST)]] | None,
        Field(
            max_length=100, description="The hosts from which client metadata documents are accepted; null means all."
        ),
    ] = None
    grant_idle_s: Annotated[
        int, Field(ge=300, le=MAX_GRANT_S, description="Seconds after which an unused grant of an MCP client ends.")
    ] = 14 * 86_400
    grant_max_s: Annotated[
        int, Field(ge=300, le=MAX_GRANT_S, description="Maximum lifetime of a grant of an MCP client, in seconds.")
    ] = MAX_GRANT_S
    max_unchecked_s: Annotated[
        int,
        Field(
            ge=300,
            le=MAX_GRANT_S,
            description="Seconds for which a sign-in is valid if the issuer returned no refresh token.",
        ),
    ] = 12 * 3600


SignInOf = Annotated[
    SignInClientGiven | None,
    Field(description="The gateway's client at the issuer; null: clients get tokens from the issuer itself."),
]


class IntrospectionGiven(BodyModel):
    """The gateway's client at the issuer's introspection endpoint (RFC 7662)."""

    client_id: Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE, description="The client's id.")]
    client_secret: ClientSecret = None
    client_secret_reference: ClientSecretReference = None
    url: Annotated[Url | None, Field(description="The endpoint; null: the endpoint of the issuer's metadata.")] = None
    client_auth: Annotated[
        Literal["basic", "post"],
        Field(description="Location of the client's id and secret: the Authorization header, or the body."),
    ] = "basic"
    tokens: Annotated[
        Literal["opaque", "jwt", "all"],
        Field(description="The tokens that are introspected; the signature of a JWT is verified first."),
    ] = "opaque"
    cache_s: Annotated[
        int,
        Field(ge=1, le=MAX_INTROSPECTION_CACHE_S, description="Seconds for which an introspection response is cached."),
    ] = 30


IntrospectionOf = Annotated[
    IntrospectionGiven | None,
    Field(description="The gateway's client at the introspection endpoint; null: only JWTs are accepted."),
]


RequiresDpop = Annotated[
    bool,
    Field(
        description="True: only tokens that are bound to a key of the client (DPoP) are accepted; with `sign_in`, the "
        "gateway issues no others."
    ),
]


class IssuerCreate(BodyModel):
    """An authorization server whose access tokens the tenant accepts."""

    name: IssuerName
    url: IssuerUrl
    rules: Rules
    jwks_url: Annotated[KeySetUrl | Absent, GIVEN] = None
    audiences: Audiences = Field(default_factory=list)
    algorithms: Algorithms = Field(default_factory=lambda: list[Algorithm](["RS256", "PS256", "ES256", "EdDSA"]))
    subject_claim: SubjectClaim = "sub"
    groups_claim: GroupsClaim = "groups"
    max_lifetime_s: Lifetime = 3600
    enabled: Enabled = True
    sign_in: SignInOf = None
    introspection: IntrospectionOf = None
    requires_dpop: RequiresDpop = False


class IssuerUpdate(BodyModel):
    """Changes of an issuer; absent fields keep their value. Sessions of people from this issuer end."""

    rules: Annotated[Rules | Absent, GIVEN] = None
    jwks_url: Annotated[KeySetUrl | Absent, GIVEN] = None
    audiences: Annotated[Audiences | Absent, GIVEN] = None
    algorithms: Annotated[Algorithms | Absent, GIVEN] = None
    subject_claim: Annotated[SubjectClaim | Absent, GIVEN] = None
    groups_claim: Annotated[GroupsClaim | Absent, GIVEN] = None
    max_lifetime_s: Annotated[Lifetime | Absent, GIVEN] = None
    enabled: Annotated[Enabled | Absent, GIVEN] = None
    sign_in: SignInOf = None
    introspection: IntrospectionOf = None
    requires_dpop: Annotated[RequiresDpop | Absent, GIVEN] = None


class IssuerListQuery(ListQuery):
    """Search, filters and order of issuers."""

    enabled: Annotated[
        bool | Absent, Field(description="Only issuers that are enabled (true) or disabled (false).")
    ] = None
    sort: ByNameOrTime = None


class PersonListQuery(ListQuery):
    """Search, filters and order of people; without `sort` they are ordered by id."""

    denied: Annotated[bool | Absent, Field(description="Only people who are denied (true) or allowed (false).")] = None
    issuer: Annotated[IssuerName | Absent, Field(description="Only people of the issuer of this name.")] = None
    sort: ByNameOrTime = None
