"""Response models of profiles, credentials and published schemas."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.responses.models import Page, ResponseModel
from gateway.catalog.snapshots.token_costs import Price
from gateway.domain.credentials import CredentialLocation, StoredCredential
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile, Rule


class RuleShown(ResponseModel):
    """A rule for primitives; an empty member matches everything."""

    names: Sequence[str]
    sources: Sequence[str]
    tags: Sequence[str]
    methods: Sequence[str]
    safety: Sequence[Safety]
    families: Sequence[str]

    @classmethod
    def of(cls, rule: Rule) -> Self:
        """Build the response from a rule."""
        return cls(
            names=rule.names,
            sources=rule.sources,
            tags=rule.tags,
            methods=rule.methods,
            safety=rule.safety,
            families=rule.families,
        )


class CountsOfProfile(ResponseModel):
    """The number of primitives of each family in a profile."""

    tools: int
    resources: int
    resource_templates: int
    prompts: int


class ProfileShown(ResponseModel):
    """A profile, with the number of its primitives and the current cost of its tool list in tokens."""

    id: str
    name: str
    description: str
    include: Sequence[RuleShown]
    exclude: Sequence[RuleShown]
    counts: CountsOfProfile
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
            counts=CountsOfProfile(
                tools=price.tools,
                resources=price.resources,
                resource_templates=price.templates,
                prompts=price.prompts,
            ),
            tools_list_bytes=price.tools_list_bytes,
            estimated_tokens=price.estimated_tokens,
        )


class CredentialShown(ResponseModel):
    """A credential without its secret."""

    id: str
    name: str
    place: CredentialLocation
    field: str
    origins: Sequence[str]
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, credential: StoredCredential) -> Self:
        """Build the response from a credential."""
        return cls(
            id=credential.id,
            name=credential.name,
            place=credential.place,
            field=credential.field,
            origins=credential.origins,
            created_at=credential.created_at,
            updated_at=credential.updated_at,
        )


class ProfilePage(Page[ProfileShown]):
    """One page of a tenant's profiles."""


class CredentialPage(Page[CredentialShown]):
    """One page of a tenant's credentials."""


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Sequence[str]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
