"""Response models of the clients of issuers."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from gateway.web.kinds.annotations import Fields
from gateway.web.kinds.references import SecretReferenceShown
from gateway.web.models import CopiedModel

ClientSecretReferenceShown = Annotated[
    SecretReferenceShown | None,
    Field(
        description="The location of the client's secret in an external store; null for a secret that is stored here."
    ),
]


class SignInClientShown(CopiedModel):
    """The gateway's own client at the issuer, without its secret."""

    client_id: Annotated[str, Field(description="The client's id.")]
    client_secret_reference: ClientSecretReferenceShown
    scopes: Annotated[Sequence[str], Field(description="The scopes that the client requests.")]
    parameters: Annotated[
        Mapping[str, str], BeforeValidator(dict), Field(description="Further parameters of authorization requests.")
    ]
    registration: Annotated[bool, Field(description="True if MCP clients may register themselves.")]
    client_hosts: Annotated[
        Sequence[str] | None,
        Field(description="The hosts from which client metadata documents are accepted; null means all."),
    ]
    grant_idle_s: Annotated[int, Field(description="Seconds after which an unused grant of an MCP client ends.")]
    grant_max_s: Annotated[int, Field(description="Maximum lifetime of a grant of an MCP client, in seconds.")]
    max_unchecked_s: Annotated[
        int, Field(description="Seconds for which a sign-in is valid if the issuer returned no refresh token.")
    ]


class IntrospectionShown(CopiedModel):
    """The gateway's client at the issuer's introspection endpoint, without its secret."""

    client_id: Annotated[str, Field(description="The client's id.")]
    client_secret_reference: ClientSecretReferenceShown
    url: Annotated[
        str | None,
        Field(
            validation_alias="given_url",
            description="The configured endpoint; null: the endpoint of the issuer's metadata.",
        ),
    ]
    client_auth: Annotated[
        str, Field(description="Location of the client's id and secret: `basic` (header) or `post` (body).")
    ]
    tokens: Annotated[str, Field(description="The tokens that are introspected: `opaque`, `jwt` or `all`.")]
    cache_s: Annotated[int, Field(description="Seconds for which an introspection response is cached.")]


CLIENTS: Fields = {
    "sign_in": (
        Annotated[SignInClientShown | None, Field(description="The gateway's own client at the issuer.")],
        ...,
    ),
    "introspection": (
        Annotated[IntrospectionShown | None, Field(description="The gateway's client at the introspection endpoint.")],
        ...,
    ),
}
"""The fields of the gateway's own clients in responses about issuers."""
