"""Response models of live sources and their primitives."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

import msgspec
from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.models import CopiedModel, Page, ResponseModel
from gateway.catalog.live.overview import LiveOverview, LivePrimitiveState, LivePrimitiveView, differences
from gateway.domain.json_access import as_object
from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety

_MOST_WAITING = 50
_decode = msgspec.json.Decoder(dict[str, object]).decode

Json = Mapping[str, object]


class LiveStatusShown(CopiedModel):
    """The attachment of a live source."""

    state: Annotated[AttachmentState, Field(description="Whether it is attached, and if not, whether that is a fault.")]
    title: Annotated[str, Field(description="Name and version of the program, as it reports them.")]
    replica: Annotated[str, Field(description="The replica that holds the attachment; empty without one.")]
    since: Annotated[datetime | None, Field(description="Time of the last change of state.")]
    fault: Annotated[str | None, Field(description="The reason for which it is not attached, if it should be.")]
    failures: Annotated[int, Field(description="Failed attempts in a row.")]
    retry_at: Annotated[datetime | None, Field(description="Time of the next attempt.")]
    notices: Annotated[Sequence[str], Field(description="Reasons for which primitives are missing or cut.")]


class LiveCountsShown(CopiedModel):
    """Numbers of the primitives of a live source: those that clients have by family, and the others by reason."""

    tools: Annotated[int, Field(description="Tools that clients have.")]
    resources: Annotated[int, Field(description="Resources that clients have.")]
    templates: Annotated[int, Field(description="Resource templates that clients have.")]
    prompts: Annotated[int, Field(description="Prompts that clients have.")]
    held: Annotated[int, Field(description="Primitives whose definition has to be accepted first.")]
    hidden: Annotated[int, Field(description="Primitives whose name another primitive of the tenant has.")]


class LivePrimitiveShown(ResponseModel):
    """One primitive of a live source."""

    family: Annotated[Family, Field(description="What it is.")]
    name: Annotated[str, Field(description="Its name, URI or URI template in the tenant.")]
    remote: Annotated[str, Field(description="Its name at the source.")]
    state: Annotated[LivePrimitiveState, Field(description="Whether clients have it, and if not, the reason.")]
    hidden_by: Annotated[str | None, Field(description="The live source that has its name, if one has.")]
    safety: Annotated[Safety, Field(description="The level in force.")]
    safety_reasons: Annotated[Sequence[str], Field(description="The reasons for the level that the gateway found.")]
    digest: Annotated[str, Field(description="Digest of the definition, for `accept`.")]
    definition: Annotated[Json, Field(description="As clients see it, or would see it once it is accepted.")]
    accepted: Annotated[Json | None, Field(description="The accepted definition, while another one is held.")]
    changed: Annotated[Sequence[str], Field(description="JSON Pointers to what differs from the accepted definition.")]

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
            definition=_decode(found.definition),
            accepted=None if accepted is None else _decode(accepted),
            changed=differences(accepted, found.definition),
        )


class LiveSourceShown(ResponseModel):
    """A live source and its attachment."""

    id: Id
    name: Name
    kind: Annotated[LiveKind, Field(description="What is attached.")]
    settings: Annotated[Json, Field(description="As they were sent; values of `env` are left out.")]
    prefix: Annotated[str | None, Field(description="Precedes the names of its tools and prompts; null: none.")]
    credential: Annotated[str | None, Field(description="The name of the stored credential that is sent; null: none.")]
    caller_credential: Annotated[
        str | None, Field(description="The credential of requests for a caller, whom it names; null: `credential`.")
    ]
    include: Annotated[Sequence[str], Field(description="Shell patterns of remote names; without any, everything.")]
    exclude: Annotated[Sequence[str], Field(description="Shell patterns of remote names that are left out.")]
    safety: Annotated[Mapping[str, Safety], Field(description="Declared levels by remote tool name.")]
    accepts_changes: Annotated[bool, Field(description="Whether new and changed definitions need no review.")]
    expose: Annotated[
        Exposure, Field(description="Whether its tools are listed, are reached through the query tools, or both.")
    ]
    enabled: Annotated[bool, Field(description="Whether it is attached at all.")]
    status: Annotated[LiveStatusShown, Field(description="The attachment.")]
    primitives: Annotated[LiveCountsShown, Field(description="How many primitives it has.")]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, overview: LiveOverview) -> Self:
        """Build the response from a described live source."""
        return cls(**_facts(overview))


class LiveSourceDetails(LiveSourceShown):
    """A live source with the primitives that wait for an admin, at most 50 of each state."""

    held: Annotated[Sequence[LivePrimitiveShown], Field(description="Definitions to review.")]
    hidden: Annotated[Sequence[LivePrimitiveShown], Field(description="Primitives whose names are taken.")]

    @classmethod
    def of(cls, overview: LiveOverview) -> Self:
        """Build the response from a described live source."""

        def waiting(state: LivePrimitiveState) -> Sequence[LivePrimitiveShown]:
            found = [one for one in overview.waiting if one.state is state]
            return [LivePrimitiveShown.of(one, overview.source) for one in found[:_MOST_WAITING]]

        return cls(**_facts(overview), held=waiting(LivePrimitiveState.HELD), hidden=waiting(LivePrimitiveState.HIDDEN))


class LiveSourcePage(Page[LiveSourceShown]):
    """One page of a tenant's live sources."""


class LivePrimitivePage(Page[LivePrimitiveShown]):
    """One page of the primitives of a live source."""


def _facts(overview: LiveOverview) -> dict[str, Any]:
    source = overview.source
    return {
        "id": source.id,
        "name": source.name,
        "kind": source.kind,
        "settings": _shown_settings(source),
        "prefix": source.prefix or None,
        "credential": source.credential,
        "caller_credential": source.caller_credential,
        "include": source.include,
        "exclude": source.exclude,
        "safety": source.safety,
        "accepts_changes": source.accepts_changes,
        "expose": source.expose,
        "enabled": source.enabled,
        "status": LiveStatusShown.of(source.status),
        "primitives": LiveCountsShown(
            tools=overview.counts[Family.TOOL],
            resources=overview.counts[Family.RESOURCE],
            templates=overview.counts[Family.TEMPLATE],
            prompts=overview.counts[Family.PROMPT],
            held=overview.count(LivePrimitiveState.HELD),
            hidden=overview.count(LivePrimitiveState.HIDDEN),
        ),
        "created_at": source.created_at,
        "updated_at": source.updated_at,
    }


def _shown_settings(source: LiveSource) -> Json:
    """The settings with null in place of each value of `env`, which may be secret."""
    variables = as_object(source.settings.get("env"))
    if variables is None:
        return source.settings
    return {**source.settings, "env": dict.fromkeys(variables)}  # guard: live-env-shown
