"""Response models of the test of a credential, and of published schemas."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, RootModel

from gateway.web.models import ResponseModel

_ACCOUNT_FIELDS = ("client_id", "scopes", "server", "authorization_url", "token_url", "revocation_url")


class CredentialTested(ResponseModel):
    """The result of a successful test: the credential's secret could be read."""

    reference: Annotated[
        str | None, Field(description="The location in the external store; null for a secret that is stored here.")
    ]


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Annotated[Sequence[str], Field(description="The name of each schema; `GET /schemas/{name}` shows it.")]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
