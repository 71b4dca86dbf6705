"""Response models of the primitives of live sources."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.catalog.live.overview import LivePrimitiveState, LivePrimitiveView, differences
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import LiveSource
from gateway.domain.primitives import Family
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.source_changes import FindingKind
from gateway.web.models import CopiedModel, Page, ResponseModel

Json = Mapping[str, object]


class LiveFindingShown(CopiedModel):
    """A suspicious text of a definition, for review by a person; it can be harmless."""

    kind: Annotated[FindingKind, Field(description="The kind of the finding.")]
    pattern: Annotated[str, Field(description="The pattern that was found; empty if the kind has none.")]
    pointer: Annotated[str, Field(description="JSON Pointer into the definition.")]
    excerpt: Annotated[str, Field(description="The text around the match, with invisible characters escaped.")]


class LivePrimitiveShown(ResponseModel):
    """One primitive of a live source."""

    family: Annotated[Family, Field(description="The family of the primitive.")]
    name: Annotated[str, Field(description="The name, URI or URI template in the tenant.")]
    remote: Annotated[str, Field(description="The name at the source.")]
    state: Annotated[
        LivePrimitiveState,
        Field(description="The state: visible to clients, or the reason why clients do not see the primitive."),
    ]
    hidden_by: Annotated[str | None, Field(description="The live source whose primitive uses the name, if any.")]
    safety: Annotated[Safety, Field(description="The effective safety level.")]
    safety_reasons: Annotated[Sequence[str], Field(description="The reasons for the assessed level.")]
    digest: Annotated[str, Field(description="Digest of the definition, for `accept`.")]
    definition: Annotated[Json, Field(description="The definition that clients see, or would see once it is accepted.")]
    accepted: Annotated[Json | None, Field(description="The accepted definition, while a changed one is held.")]
    changed: Annotated[
        Sequence[str], Field(description="JSON Pointers to the differences from the accepted definition.")
    ]
    findings: Annotated[Sequence[LiveFindingShown], Field(description="Suspicious texts of the definition.")]

    @classmethod
    def of(cls, view: LivePrimitiveView, source: LiveSource) -> Self:
        """Build the response from a primitive and its source."""
        found, accepted = view.remembered.primitive, view.remembered.accepted_definition
        declared = source.safety.get(found.remote) if found.family is Family.TOOL else None
        return cls(
            family=found.family,
            name=found.name,
            remote=found.remote,
            state=view.state,
            hidden_by=view.owner or None,
            safety=declared or found.safety,
            safety_reasons=found.safety_reasons,
            digest=found.digest,
            definition=decode_object(found.definition),
            accepted=None if accepted is None else decode_object(accepted),
            changed=differences(accepted, found.definition),
            findings=[LiveFindingShown.of(one) for one in view.remembered.findings],
        )


class LivePrimitivePage(Page[LivePrimitiveShown]):
    """One page of the primitives of a live source."""
