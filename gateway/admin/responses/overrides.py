"""Response models of overrides of imported tools."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field

from gateway.admin.responses.models import Page, ResponseModel
from gateway.catalog.overrides.overrides import KeptOverride
from gateway.domain.overrides import Override
from gateway.domain.tenancy.policy import Safety


class OverrideShown(ResponseModel):
    """The tenant's changes of an imported tool; null keeps the document's value."""

    id: str
    operation: Annotated[str, Field(description="Method and path that it belongs to, whatever the document.")]
    name: str | None
    title: str | None
    description: str | None
    hidden: bool | None
    enabled: bool | None
    safety: Safety | None
    annotations: Mapping[str, bool] | None
    pinned: Mapping[str, object] | None
    result: Mapping[str, object] | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, override: Override) -> Self:
        """Build the response from an override."""
        return cls(**_facts(override))


class KeptOverrideShown(OverrideShown):
    """An override of a tool of a source, and the name of that tool."""

    tool: Annotated[str | None, Field(description="Null while the document has no such operation.")]

    @classmethod
    def kept(cls, kept: KeptOverride) -> Self:
        """Build the response from a stored override."""
        return cls(**_facts(kept.override), tool=kept.tool)


class OverridePage(Page[KeptOverrideShown]):
    """One page of a source's overrides, by method and path."""


def _facts(override: Override) -> dict[str, Any]:
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
