"""Response models of profiles, credentials and published schemas."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field, RootModel

from gateway.admin.fields import (
    CreatedAt,
    Id,
    Name,
    UpdatedAt,
)
from gateway.domain.credentials import (
    AccountTerms,
    CredentialKind,
    CredentialLocation,
    SignedAssertion,
    StoredCredential,
    TokenExchange,
)
from gateway.domain.tenancy.secret_references import SecretStoreKind
from gateway.identity.oauth.account_tokens import callback_url
from gateway.web.models import CopiedModel, Page, ResponseModel

_ACCOUNT_FIELDS = ("client_id", "scopes", "server", "authorization_url", "token_url", "revocation_url")


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


class CredentialPage(Page[CredentialShown]):
    """One page of a tenant's credentials."""


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Annotated[Sequence[str], Field(description="The name of each schema; `GET /schemas/{name}` shows it.")]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
