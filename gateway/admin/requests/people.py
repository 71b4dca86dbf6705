"""Request models of issuers and of the people who sign in through them."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.openapi.formats import HOST, LABEL, NAME, PRINTABLE, SCOPE
from gateway.admin.requests.lists import ByNameOrTime, ListQuery
from gateway.admin.requests.models import GIVEN, Absent, BodyModel, SecretText, Url
from gateway.domain.tenancy.issuers import ALGORITHMS, MAX_GRANT_S, MAX_INTROSPECTION_CACHE_S

Claim = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Condition = Annotated[str | Absent, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]

IssuerName = Annotated[str, Field(pattern=NAME, description="Unique in the tenant; subjects begin with it.")]
IssuerUrl = Annotated[Url, Field(description="The issuer identifier: the `iss` of its tokens.")]
KeySetUrl = Annotated[Url, Field(description="The URL of its signing keys; else the `jwks_uri` of its metadata.")]
Algorithms = Annotated[
    list[Algorithm],
    Field(min_length=1, max_length=len(ALGORITHMS), description="The signature algorithms that it may use."),
]
Audiences = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE)]],
    Field(max_length=10, description="Audiences besides the URL of the tenant; only the operator names them."),
]
SubjectClaim = Annotated[Claim, Field(description="The claim that names the person: a name or a JSON Pointer.")]
GroupsClaim = Annotated[Claim, Field(description="The claim with the person's groups: a name or a JSON Pointer.")]
Lifetime = Annotated[int, Field(ge=60, le=86_400, description="Seconds for which a token is accepted, from its `iat`.")]
Enabled = Annotated[bool, Field(description="False refuses its tokens.")]


class AdmissionRuleGiven(BodyModel):
    """A rule that admits people who match every given condition; without a condition, all people."""

    group: Annotated[Condition, Field(description="A group of the person.")] = None
    scope: Annotated[Condition, Field(description="A scope of the token.")] = None
    subject: Annotated[Condition, Field(description="The person, as the issuer names it.")] = None
    profiles: Annotated[
        list[Annotated[str, Field(pattern=LABEL)]] | Absent,
        Field(
            min_length=1,
            max_length=100,
            description="The profiles at which they are admitted; an empty list means all.",
        ),
    ] = None


Rules = Annotated[
    list[AdmissionRuleGiven],
    Field(min_length=1, max_length=100, description="The rules that admit users; a user needs to match one."),
]


class SignInClientGiven(BodyModel):
    """The gateway's own client at the issuer. With it, the gateway signs people in and is the issuer of MCP clients."""

    client_id: Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE, description="The client's id.")]
    client_secret: Annotated[
        SecretText | Absent, GIVEN, Field(description="The client's secret; without it, the stored one stays.")
    ] = None
    scopes: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=200, pattern=SCOPE)]],
        Field(min_length=1, max_length=20, description="The scopes to request; openid is one of them."),
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
        Field(max_length=100, description="The hosts whose client metadata documents count; null means all."),
    ] = None
    grant_idle_s: Annotated[
        int, Field(ge=300, le=MAX_GRANT_S, description="Seconds after which the unused grant of a client ends.")
    ] = 14 * 86_400
    grant_max_s: Annotated[
        int, Field(ge=300, le=MAX_GRANT_S, description="Seconds after which every grant of a client ends.")
    ] = MAX_GRANT_S
    max_unchecked_s: Annotated[
        int,
        Field(ge=300, le=MAX_GRANT_S, description="Seconds for which a sign-in counts without a refresh token."),
    ] = 12 * 3600


SignInOf = Annotated[
    SignInClientGiven | None,
    Field(description="The gateway's client at the issuer; null: clients get tokens from the issuer itself."),
]


class IntrospectionGiven(BodyModel):
    """The gateway's client at the issuer's introspection endpoint (RFC 7662)."""

    client_id: Annotated[str, Field(min_length=1, max_length=500, pattern=PRINTABLE, description="The client's id.")]
    client_secret: Annotated[
        SecretText | Absent, GIVEN, Field(description="The client's secret; without it, the stored one stays.")
    ] = None
    url: Annotated[Url | None, Field(description="The endpoint; null: the one of the issuer's metadata.")] = None
    client_auth: Annotated[
        Literal["basic", "post"], Field(description="Place of id and secret: the Authorization header, or the body.")
    ] = "basic"
    tokens: Annotated[
        Literal["opaque", "jwt", "all"],
        Field(description="The tokens about which the issuer is asked; JWTs are verified before."),
    ] = "opaque"
    cache_s: Annotated[
        int, Field(ge=1, le=MAX_INTROSPECTION_CACHE_S, description="Seconds for which an answer counts.")
    ] = 30


IntrospectionOf = Annotated[
    IntrospectionGiven | None,
    Field(description="The gateway's client at the introspection endpoint; null: only JWTs are accepted."),
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


class IssuerUpdate(BodyModel):
    """Changes of an issuer; absent fields keep their value. Sessions of its people end."""

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
