"""Response models of issuers and of the people who sign in with their tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.selections import SecretReferenceShown
from gateway.domain.tenancy.issuers import Issuer
from gateway.domain.tenancy.keys import Key
from gateway.web.models import CopiedModel, Page, ResponseModel

ClientSecretReferenceShown = Annotated[
    SecretReferenceShown | None,
    Field(
        description="The location of the client's secret in an external store; null for a secret that is stored here."
    ),
]


class AdmissionRuleShown(CopiedModel):
    """A rule that admits people who match all of its non-null conditions."""

    group: Annotated[str | None, Field(description="A group of the person.")]
    scope: Annotated[str | None, Field(description="A scope of the token.")]
    subject: Annotated[str | None, Field(description="The person's subject at the issuer.")]
    profiles: Annotated[
        Sequence[str] | None, Field(description="The profiles to which these people are admitted; null means all.")
    ]


class SignInClientShown(ResponseModel):
    """The gateway's own client at the issuer, without its secret."""

    client_id: Annotated[str, Field(description="The client's id.")]
    client_secret_reference: ClientSecretReferenceShown
    scopes: Annotated[Sequence[str], Field(description="The scopes that the client requests.")]
    parameters: Annotated[Mapping[str, str], Field(description="Further parameters of authorization requests.")]
    redirect_uri: Annotated[
        str, Field(description="The redirect URI to register; a path if `GATEWAY_PUBLIC_URL` is unset.")
    ]
    authorization_url: Annotated[
        str, Field(description="The authorization endpoint; empty until the issuer is enabled.")
    ]
    token_url: Annotated[str, Field(description="The token endpoint; empty until the issuer is enabled.")]
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
    given_url: Annotated[
        str | None, Field(description="The configured endpoint; null: the endpoint of the issuer's metadata.")
    ]
    url: Annotated[str, Field(description="The effective endpoint; empty until the issuer is enabled.")]
    client_auth: Annotated[
        str, Field(description="Location of the client's id and secret: `basic` (header) or `post` (body).")
    ]
    tokens: Annotated[str, Field(description="The tokens that are introspected: `opaque`, `jwt` or `all`.")]
    cache_s: Annotated[int, Field(description="Seconds for which an introspection response is cached.")]


class IssuerShown(CopiedModel):
    """An authorization server whose access tokens the tenant accepts."""

    id: Id
    name: Name
    url: Annotated[str, Field(description="The issuer identifier, equal to `iss` in the issuer's tokens.")]
    jwks_url: Annotated[
        str, Field(description="The URL of the issuer's signing keys; empty until the issuer is enabled.")
    ]
    audiences: Annotated[Sequence[str], Field(description="Accepted audiences in addition to the URL of the tenant.")]
    algorithms: Annotated[Sequence[str], Field(description="The accepted signature algorithms.")]
    subject_claim: Annotated[str, Field(description="The claim that names the person.")]
    groups_claim: Annotated[str, Field(description="The claim with the person's groups.")]
    rules: Annotated[Sequence[AdmissionRuleShown], Field(description="The rules that admit users.")]
    max_lifetime_s: Annotated[int, Field(description="Maximum age of a token in seconds, counted from its `iat`.")]
    enabled: Annotated[bool, Field(description="False: the gateway refuses the tokens of the issuer.")]
    sign_in: Annotated[SignInClientShown | None, Field(description="The gateway's own client at the issuer.")]
    introspection: Annotated[
        IntrospectionShown | None, Field(description="The gateway's client at the introspection endpoint.")
    ]
    requires_dpop: Annotated[
        bool, Field(description="True: only tokens that are bound to a key of the client are accepted.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def at(cls, issuer: Issuer, slug: str, public_url: str | None) -> Self:
        """Build the response from an issuer of the tenant with this slug."""
        client, copied = issuer.sign_in, cls.of(replace(issuer, sign_in=None))
        if client is None:
            return copied
        reference = client.client_secret_reference
        shown = SignInClientShown(
            client_id=client.client_id,
            client_secret_reference=None if reference is None else SecretReferenceShown.of(reference),
            scopes=client.scopes,
            parameters=dict(client.parameters),
            redirect_uri=f"{public_url or ''}{issuer.callback_path(slug)}",
            authorization_url=client.authorization_url,
            token_url=client.token_url,
            registration=client.registration,
            client_hosts=client.client_hosts,
            grant_idle_s=client.grant_idle_s,
            grant_max_s=client.grant_max_s,
            max_unchecked_s=client.max_unchecked_s,
        )
        return copied.model_copy(update={"sign_in": shown})


class IssuerPage(Page[IssuerShown]):
    """One page of a tenant's issuers."""


class PersonShown(ResponseModel):
    """A person who signed in with an access token, or was denied before."""

    id: Id
    name: Annotated[str, Field(description="The person's subject at the issuer.")]
    subject: Annotated[str, Field(description="The person's subject in the tenant: the issuer's name and `name`.")]
    issuer: Annotated[str, Field(description="The id of the issuer.")]
    created_at: Annotated[datetime, Field(description="The time of the first sign-in, or of a denial before it.")]
    active_until: Annotated[
        datetime | None, Field(description="The time until which tasks of the person continue without a token.")
    ]
    denied_at: Annotated[
        datetime | None, Field(description="The time at which access was denied; null if access is allowed.")
    ]
    keys_made: Annotated[
        Sequence[Id],
        Field(description="Valid keys of other subjects that the person made; a denial does not end them."),
    ]

    @classmethod
    def of(cls, person: Key, keys: Sequence[Key]) -> Self:
        """Build the response from a person and the keys that people made."""
        name = f"user:{person.subject}"
        return cls(
            id=person.id,
            name=person.name,
            subject=person.subject,
            issuer=person.issuer or "",
            created_at=person.created_at,
            active_until=person.expires_at,
            denied_at=person.revoked_at,
            keys_made=[key.id for key in keys if name in key.makers and key.subject != person.subject],
        )


class PersonPage(Page[PersonShown]):
    """One page of a tenant's people."""
