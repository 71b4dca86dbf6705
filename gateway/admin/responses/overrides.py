"""Response models of overrides of imported tools."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field

from gateway.admin.fields import DESCRIPTION, UNIQUE_NAME, CreatedAt, Id, UpdatedAt
from gateway.catalog.overrides.overrides import StoredOverride
from gateway.domain.overrides import Override
from gateway.domain.tenancy.policy import Safety
from gateway.web.models import Page, ResponseModel


class OverrideShown(ResponseModel):
    """The tenant's changes of an imported tool; null keeps the document's value."""

    id: Id
    operation: Annotated[
        str, Field(description="Method and path, which identify the operation in every version of the document.")
    ]
    name: Annotated[str | None, UNIQUE_NAME]
    title: Annotated[str | None, Field(description="The title that user interfaces show instead of the name.")]
    description: Annotated[str | None, DESCRIPTION]
    hidden: Annotated[bool | None, Field(description="True: clients can neither list nor call the tool.")]
    enabled: Annotated[bool | None, Field(description="False: no principal can list or use the tool.")]
    safety: Annotated[Safety | None, Field(description="The safety level.")]
    annotations: Annotated[Mapping[str, bool] | None, Field(description="Hints to clients about the tool's effects.")]
    pinned: Annotated[
        Mapping[str, object] | None,
        Field(description="Arguments with a fixed value, which callers cannot send."),
    ]
    result: Annotated[Mapping[str, object] | None, Field(description="The projection of JSON responses.")]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, override: Override) -> Self:
        """Build the response from an override."""
        return cls(**_shared_fields(override))


class KeptOverrideShown(OverrideShown):
    """The override of a source's tool, and the name of the tool."""

    tool: Annotated[
        str | None, Field(description="The name of the tool; null while the document has no such operation.")
    ]

    @classmethod
    def kept(cls, kept: StoredOverride) -> Self:
        """Build the response from a stored override."""
        return cls(**_shared_fields(kept.override), tool=kept.tool)


class OverridePage(Page[KeptOverrideShown]):
    """One page of a source's overrides, by method and path."""


def _shared_fields(override: Override) -> dict[str, Any]:
    changes = override.changes
    return {
        "id": override.id,
        "operation": override.identity,
        "name": changes.name,
        "title": changes.title,
        "description": changes.description,
        "hidden": changes.hidden,
        "enabled": changes.enabled,
        "safety": changes.safety,
        "annotations": changes.annotations,
        "pinned": changes.pinned,
        "result": changes.result,
        "created_at": override.created_at,
        "updated_at": override.updated_at,
    }
