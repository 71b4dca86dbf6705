"""Response models of profiles, credentials and published schemas."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.fields import (
    DESCRIPTION,
    EXCLUDE,
    INCLUDE,
    SELECTS_FIELDS,
    STRUCTURED_ONCE,
    SUMMARY_THRESHOLD,
    CreatedAt,
    Id,
    Name,
    UpdatedAt,
)
from gateway.admin.responses.models import CopiedModel, Page, ResponseModel
from gateway.catalog.snapshots.token_costs import Price
from gateway.domain.credentials import (
    AccountTerms,
    CredentialKind,
    CredentialLocation,
    SignedAssertion,
    StoredCredential,
    TokenExchange,
)
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tenancy.secret_references import SecretStoreKind
from gateway.identity.oauth.account_tokens import callback_url

_ACCOUNT_FIELDS = ("client_id", "scopes", "server", "authorization_url", "token_url", "revocation_url")


class RuleShown(CopiedModel):
    """A rule for primitives; an empty member matches everything."""

    names: Annotated[Sequence[str], Field(description="Shell patterns of names; for resources, of URIs.")]
    sources: Annotated[Sequence[str], Field(description="Names of sources.")]
    tags: Annotated[Sequence[str], Field(description="Tags of imported operations.")]
    methods: Annotated[Sequence[str], Field(description="HTTP methods of imported operations.")]
    safety: Annotated[Sequence[Safety], Field(description="Safety levels.")]
    families: Annotated[
        Sequence[str], Field(description="Families of primitives: tools, resources, resource templates, prompts.")
    ]


class CountsOfProfile(CopiedModel):
    """The number of primitives of each family in a profile."""

    tools: Annotated[int, Field(description="The number of tools.")]
    resources: Annotated[int, Field(description="The number of resources.")]
    resource_templates: Annotated[
        int, Field(validation_alias="templates", description="The number of resource templates.")
    ]
    prompts: Annotated[int, Field(description="The number of prompts.")]


class ProfileShown(ResponseModel):
    """A profile, with the number of its primitives and the current cost of its tool list in tokens."""

    id: Id
    name: Name
    description: Annotated[str, DESCRIPTION]
    include: Annotated[Sequence[RuleShown], INCLUDE]
    exclude: Annotated[Sequence[RuleShown], EXCLUDE]
    structured_once: Annotated[bool, STRUCTURED_ONCE]
    selects_fields: Annotated[bool, SELECTS_FIELDS]
    summary_threshold: Annotated[int, SUMMARY_THRESHOLD]
    counts: Annotated[CountsOfProfile, Field(description="The number of primitives by family.")]
    tools_list_bytes: Annotated[int, Field(description="The size of the tool list in bytes.")]
    estimated_tokens: Annotated[int, Field(description="The estimated cost of the tool list in tokens: bytes / 4.")]

    @classmethod
    def of(cls, profile: Profile, price: Price) -> Self:
        """Build the response from a profile and its cost."""
        return cls(
            id=profile.id,
            name=profile.name,
            description=profile.description,
            include=[RuleShown.of(rule) for rule in profile.include],
            exclude=[RuleShown.of(rule) for rule in profile.exclude],
            structured_once=profile.structured_once,
            selects_fields=profile.selects_fields,
            summary_threshold=profile.summary_threshold,
            counts=CountsOfProfile.of(price),
            tools_list_bytes=price.tools_list_bytes,
            estimated_tokens=price.estimated_tokens,
        )


class SecretReferenceShown(CopiedModel):
    """The location of a secret in an external store."""

    store: Annotated[SecretStoreKind, Field(description="The kind of the store.")]
    path: Annotated[
        str, Field(description="The path within the tenant's part of the store, or the name of a variable.")
    ]
    field: Annotated[str | None, Field(description="The field of a secret in Vault.")]


class CredentialTested(ResponseModel):
    """The result of a successful test: the credential's secret could be read."""

    reference: Annotated[
        str | None, Field(description="The location in the external store; null for a secret that is stored here.")
    ]


class CredentialShown(ResponseModel):
    """A credential without its secret."""

    id: Id
    name: Name
    kind: Annotated[CredentialKind, Field(description="The identity that the upstream sees.")]
    place: Annotated[CredentialLocation, Field(description="The location of the credential in a request.")]
    field: Annotated[
        str, Field(description="The name of the header or query parameter; empty if the location needs none.")
    ]
    origins: Annotated[Sequence[str], Field(description="The only origins that receive the secret.")]
    audience: Annotated[str | None, Field(description="The audience of the caller's token.")] = None
    issuer: Annotated[str | None, Field(description="The issuer that exchanges the caller's token.")] = None
    client_id: Annotated[str | None, Field(description="The client id of the gateway at the issuer.")] = None
    token_url: Annotated[str | None, Field(description="The token endpoint, from the issuer's metadata.")] = None
    scopes: Annotated[Sequence[str], Field(description="The scopes that are requested.")] = ()
    server: Annotated[
        str | None, Field(description="The authorization server at which users connect accounts, by its metadata.")
    ] = None
    authorization_url: Annotated[str | None, Field(description="The authorization endpoint of that server.")] = None
    revocation_url: Annotated[
        str | None, Field(description="The revocation endpoint of that server, if it has one.")
    ] = None
    parameters: Annotated[Mapping[str, str], Field(description="Further parameters of authorization requests.")] = (
        Field(default_factory=dict[str, str])
    )
    redirect_uri: Annotated[
        str | None, Field(description="The redirect URI to register at that server; null for other kinds.")
    ] = None
    reference: Annotated[
        SecretReferenceShown | None, Field(description="The location of the secret in an external store; null if none.")
    ] = None
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, credential: StoredCredential) -> Self:
        """Build the response from a credential."""
        terms = credential.delegation
        members: dict[str, object] = {}
        if isinstance(terms, SignedAssertion | TokenExchange):
            members["audience"] = terms.audience
        if isinstance(terms, AccountTerms):
            members |= {name: getattr(terms, name) for name in _ACCOUNT_FIELDS} | {"parameters": dict(terms.parameters)}
        if isinstance(terms, TokenExchange):
            members |= {"issuer": terms.issuer_name, "client_id": terms.client_id}
            members |= {"token_url": terms.token_url, "scopes": terms.scopes}
        if (outside := credential.reference) is not None:
            members["reference"] = {"store": outside.store, "path": outside.path, "field": outside.field}
        names = ("id", "name", "kind", "place", "field", "origins", "created_at", "updated_at")
        return cls.model_validate({**{name: getattr(credential, name) for name in names}, **members})

    @classmethod
    def at(cls, credential: StoredCredential, slug: str, public_url: str | None) -> Self:
        """Build the response from a credential, with the redirect URI of accounts of users."""
        shown = cls.of(credential)
        if credential.kind is CredentialKind.USER and public_url is not None:
            shown = shown.model_copy(update={"redirect_uri": callback_url(public_url, slug, credential.name)})
        return shown


class ProfilePage(Page[ProfileShown]):
    """One page of a tenant's profiles."""


class CredentialPage(Page[CredentialShown]):
    """One page of a tenant's credentials."""


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Annotated[Sequence[str], Field(description="The name of each schema; `GET /schemas/{name}` shows it.")]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
