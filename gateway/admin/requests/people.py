"""Request models of the clients of issuers."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.models import SecretText, Url
from gateway.domain.members.formats import HOST, NAME, PRINTABLE, SCOPE
from gateway.domain.tenancy.limits import MAX_GRANT_S, MAX_INTROSPECTION_CACHE_S
from gateway.web.kinds.annotations import Fields
from gateway.web.kinds.references import SecretReferenceSent
from gateway.web.models import GIVEN, Absent, BodyModel

ClientSecret = Annotated[
    SecretText | Absent,
    GIVEN,
    Field(description="The client's secret. Without it and a reference, the stored secret or reference is kept."),
]
ClientSecretReference = Annotated[
    SecretReferenceSent | None,
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


CLIENTS: Fields = {"sign_in": (SignInOf, None), "introspection": (IntrospectionOf, None)}
"""The fields of the gateway's own clients in requests about issuers."""
