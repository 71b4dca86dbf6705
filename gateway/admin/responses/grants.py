"""Response models of consents and grants."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id
from gateway.domain.tenancy.grants import GrantState
from gateway.web.models import CopiedModel, Page

Subject = Annotated[str, Field(description="The subject of the person in the tenant.")]
ClientId = Annotated[str, Field(validation_alias="client", description="The id of the client.")]
ClientName = Annotated[str, Field(description="The client's name at the time of the person's decision.")]
Resource = Annotated[str, Field(description="The MCP URL for which the tokens are valid.")]
Scopes = Annotated[Sequence[str], Field(description="The scopes of the tokens.")]


class ConsentShown(CopiedModel):
    """A person's permission for a client to receive tokens for a resource."""

    id: Id
    subject: Subject
    client_id: ClientId
    client_name: ClientName
    redirect_host: Annotated[
        str, Field(description="The host, the local machine or the URI scheme that receives authorization codes.")
    ]
    resource: Resource
    scopes: Scopes
    created_at: CreatedAt


class ConsentPage(Page[ConsentShown]):
    """One page of the consents of a tenant's people."""


class GrantShown(CopiedModel):
    """A grant: one authorization of a client by a person, with the tokens that were issued under it."""

    id: Id
    subject: Subject
    client_id: ClientId
    client_name: ClientName
    redirect_uri: Annotated[str, Field(description="The redirect URI that received the authorization code.")]
    resource: Resource
    profile: Annotated[str, Field(description="The profile of the resource.")]
    scopes: Scopes
    state: Annotated[GrantState, Field(description="`active`, `ended` or `revoked`.")]
    created_at: CreatedAt
    used_at: Annotated[datetime | None, Field(description="The last time at which a token was issued.")]
    idle_ends_at: Annotated[datetime, Field(description="The time at which the grant ends if it is not used before.")]
    ends_at: Annotated[datetime, Field(description="The time at which the grant ends even if it is used.")]
    revoked_at: Annotated[datetime | None, Field(description="The time of revocation; null if it is not revoked.")]
    revoked_for: Annotated[str | None, Field(description="The reason for the revocation, or its author.")]
    thumbprint: Annotated[
        str | None,
        Field(description="The thumbprint of the client's key to which refresh tokens are bound (DPoP); null if none."),
    ]


class GrantPage(Page[GrantShown]):
    """One page of the grants of a tenant's people."""
