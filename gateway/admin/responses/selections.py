"""Response models of profiles, credentials and published schemas."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.fields import DESCRIPTION, EXCLUDE, INCLUDE, CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.models import CopiedModel, Page, ResponseModel
from gateway.catalog.snapshots.token_costs import Price
from gateway.domain.credentials import CredentialKind, CredentialLocation, StoredCredential, TokenExchange
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile


class RuleShown(CopiedModel):
    """A rule for primitives; an empty member matches everything."""

    names: Annotated[Sequence[str], Field(description="Shell patterns over the name; of resources: the URI.")]
    sources: Annotated[Sequence[str], Field(description="Names of sources.")]
    tags: Annotated[Sequence[str], Field(description="Tags of imported operations.")]
    methods: Annotated[Sequence[str], Field(description="HTTP methods of imported operations.")]
    safety: Annotated[Sequence[Safety], Field(description="Safety levels.")]
    families: Annotated[
        Sequence[str], Field(description="Kinds of primitives: tools, resources, resource templates, prompts.")
    ]


class CountsOfProfile(CopiedModel):
    """The number of primitives of each family in a profile."""

    tools: Annotated[int, Field(description="How many tools.")]
    resources: Annotated[int, Field(description="How many resources.")]
    resource_templates: Annotated[int, Field(validation_alias="templates", description="How many resource templates.")]
    prompts: Annotated[int, Field(description="How many prompts.")]


class ProfileShown(ResponseModel):
    """A profile, with the number of its primitives and the current cost of its tool list in tokens."""

    id: Id
    name: Name
    description: Annotated[str, DESCRIPTION]
    include: Annotated[Sequence[RuleShown], INCLUDE]
    exclude: Annotated[Sequence[RuleShown], EXCLUDE]
    counts: Annotated[CountsOfProfile, Field(description="How many there are of each.")]
    tools_list_bytes: Annotated[int, Field(description="What a client reads to list its tools.")]
    estimated_tokens: Annotated[int, Field(description="About what that costs a model: bytes / 4.")]

    @classmethod
    def of(cls, profile: Profile, price: Price) -> Self:
        """Build the response from a profile and its cost."""
        return cls(
            id=profile.id,
            name=profile.name,
            description=profile.description,
            include=[RuleShown.of(rule) for rule in profile.include],
            exclude=[RuleShown.of(rule) for rule in profile.exclude],
            counts=CountsOfProfile.of(price),
            tools_list_bytes=price.tools_list_bytes,
            estimated_tokens=price.estimated_tokens,
        )


class CredentialShown(ResponseModel):
    """A credential without its secret."""

    id: Id
    name: Name
    kind: Annotated[CredentialKind, Field(description="Whose identity arrives at the upstream.")]
    place: Annotated[CredentialLocation, Field(description="Where in a request it is put.")]
    field: Annotated[
        str, Field(description="The header or query parameter it goes into; empty where its place needs none.")
    ]
    origins: Annotated[Sequence[str], Field(description="The only origins that the secret is sent to.")]
    audience: Annotated[str | None, Field(description="Whom the token of the caller is for.")] = None
    issuer: Annotated[str | None, Field(description="The issuer at which the caller's token is exchanged.")] = None
    client_id: Annotated[str | None, Field(description="The client of the exchange at the issuer.")] = None
    token_url: Annotated[str | None, Field(description="The token endpoint that the issuer's metadata named.")] = None
    scopes: Annotated[Sequence[str], Field(description="Scopes that the exchange asks for.")] = ()
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, credential: StoredCredential) -> Self:
        """Build the response from a credential."""
        terms = credential.delegation
        members: dict[str, object] = {} if terms is None else {"audience": terms.audience}
        if isinstance(terms, TokenExchange):
            members |= {"issuer": terms.issuer_name, "client_id": terms.client_id}
            members |= {"token_url": terms.token_url, "scopes": terms.scopes}
        names = ("id", "name", "kind", "place", "field", "origins", "created_at", "updated_at")
        return cls.model_validate({**{name: getattr(credential, name) for name in names}, **members})


class ProfilePage(Page[ProfileShown]):
    """One page of a tenant's profiles."""


class CredentialPage(Page[CredentialShown]):
    """One page of a tenant's credentials."""


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Annotated[Sequence[str], Field(description="The name of each schema; `GET /schemas/{name}` shows it.")]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
