"""Response models of overrides of imported tools."""

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field

from gateway.catalog.overrides.overrides import StoredOverride
from gateway.domain.tenancy.own_primitives import AppliedOverride, show_override
from gateway.web.kinds.annotations import shown_model
from gateway.web.models import CopiedModel, Page

if TYPE_CHECKING:  # a derived class is no type for a checker

    class OverrideShown(CopiedModel):
        """The tenant's changes of an imported tool."""

else:
    OverrideShown = shown_model(AppliedOverride)


class KeptOverrideShown(OverrideShown):
    """The override of a source's tool, and the name of the tool."""

    tool: Annotated[
        str | None, Field(description="The name of the tool; null while the document has no such operation.")
    ]

    @classmethod
    def kept(cls, kept: StoredOverride) -> Self:
        """Build the response from a stored override."""
        shown = OverrideShown.of(show_override(kept.override))
        return cls.model_validate({**shown.model_dump(), "tool": kept.tool})


class OverridePage(Page[KeptOverrideShown]):
    """One page of a source's overrides, by method and path."""
