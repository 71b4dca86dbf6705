"""Response models of published JSON Schemas."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, RootModel

from gateway.web.models import ResponseModel


class SchemaNames(ResponseModel):
    """The names of the JSON Schemas of definitions and handlers."""

    items: Annotated[Sequence[str], Field(description="The name of each schema; `GET /schemas/{name}` shows it.")]


class SchemaDocument(RootModel[Mapping[str, object]]):
    """A JSON Schema (2020-12)."""
