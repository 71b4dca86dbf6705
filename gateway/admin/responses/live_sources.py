"""Response models of live sources and their primitives."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.catalog.live.overview import LiveOverview, LivePrimitiveState, LivePrimitiveView, differences
from gateway.domain.json_access import as_object
from gateway.domain.json_text import decode_object
from gateway.domain.live_sources import AttachmentState, LiveKind, LiveSource
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety
from gateway.domain.updates.source_changes import FindingKind
from gateway.web.models import CopiedModel, Page, ResponseModel

_MAX_WAITING = 50

Json = Mapping[str, object]


class LiveSessions(StrEnum):
    """Ways in which callers share a session at a live source."""

    PER_CALLER = "per_caller"
    SHARED = "shared"


class LiveStatusShown(CopiedModel):
    """The attachment of a live source."""

    state: Annotated[AttachmentState, Field(description="The state of the attachment.")]
    title: Annotated[str, Field(description="Name and version of the program, as it reports them.")]
    replica: Annotated[
        str, Field(description="The replica that holds the attachment; empty if the source is not attached.")
    ]
    since: Annotated[datetime | None, Field(description="Time of the last change of state.")]
    fault: Annotated[
        str | None, Field(description="The reason why the source is not attached; empty if it is attached or disabled.")
    ]
    failures: Annotated[int, Field(description="The number of consecutive failed attempts.")]
    retry_at: Annotated[datetime | None, Field(description="Time of the next attempt.")]
    notices: Annotated[Sequence[str], Field(description="The reasons why primitives are missing or truncated.")]


class LiveCountsShown(CopiedModel):
    """Counts of a live source's primitives: visible ones by family, hidden and unreviewed ones in total."""

    tools: Annotated[int, Field(description="The number of tools that clients see.")]
    resources: Annotated[int, Field(description="The number of resources that clients see.")]
    templates: Annotated[int, Field(description="The number of resource templates that clients see.")]
    prompts: Annotated[int, Field(description="The number of prompts that clients see.")]
    held: Annotated[int, Field(description="The number of primitives whose definition an admin has to accept first.")]
    hidden: Annotated[
        int, Field(description="The number of primitives whose name another primitive of the tenant uses.")
    ]


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


class LiveSourceShown(ResponseModel):
    """A live source and its attachment."""

    id: Id
    name: Name
    kind: Annotated[LiveKind, Field(description="The kind of the live source.")]
    settings: Annotated[Json, Field(description="The settings as they were sent, without the values of `env`.")]
    prefix: Annotated[
        str | None, Field(description="The prefix of the names of the source's tools and prompts; null if none.")
    ]
    credential: Annotated[
        str | None, Field(description="The name of the stored credential that is sent; null if none.")
    ]
    caller_credential: Annotated[
        str | None,
        Field(
            description="The credential of requests on behalf of a caller, which identifies the caller. Null: such "
            "requests send `credential`."
        ),
    ]
    include: Annotated[
        Sequence[str], Field(description="Shell patterns of included remote names; an empty list includes everything.")
    ]
    exclude: Annotated[Sequence[str], Field(description="Shell patterns of excluded remote names.")]
    safety: Annotated[Mapping[str, Safety], Field(description="Declared levels by remote tool name.")]
    accepts_changes: Annotated[bool, Field(description="True if new and changed definitions need no review.")]
    expose: Annotated[
        Exposure,
        Field(description="`tools`: the source's tools are listed; `query`: the query tools call them; or `both`."),
    ]
    enabled: Annotated[bool, Field(description="False: the live source is disabled.")]
    sessions: Annotated[
        LiveSessions,
        Field(
            description="`per_caller`: each caller has its own session at the source, if the source has sessions; "
            "`shared`: all callers of the tenant use one."
        ),
    ]
    status: Annotated[LiveStatusShown, Field(description="The attachment.")]
    primitives: Annotated[
        LiveCountsShown, Field(description="The number of the source's primitives, by family and state.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, overview: LiveOverview) -> Self:
        """Build the response from a described live source."""
        return cls(**_shared_fields(overview))


class LiveSourceDetails(LiveSourceShown):
    """A live source with the primitives that an admin has to review, at most 50 of each state or with findings."""

    held: Annotated[Sequence[LivePrimitiveShown], Field(description="The definitions that an admin has to review.")]
    hidden: Annotated[
        Sequence[LivePrimitiveShown], Field(description="The primitives whose names other primitives use.")
    ]
    suspicious: Annotated[
        Sequence[LivePrimitiveShown],
        Field(description="The primitives whose definitions have suspicious texts, in every state."),
    ]

    @classmethod
    def of(cls, overview: LiveOverview) -> Self:
        """Build the response from a described live source."""

        def shown(found: Iterable[LivePrimitiveView]) -> Sequence[LivePrimitiveShown]:
            return [LivePrimitiveShown.of(one, overview.source) for one in islice(found, _MAX_WAITING)]

        return cls(
            **_shared_fields(overview),
            held=shown(one for one in overview.needs_attention if one.state is LivePrimitiveState.HELD),
            hidden=shown(one for one in overview.needs_attention if one.state is LivePrimitiveState.HIDDEN),
            suspicious=shown(one for one in overview.needs_attention if one.remembered.findings),
        )


class LiveSourcePage(Page[LiveSourceShown]):
    """One page of a tenant's live sources."""


class LivePrimitivePage(Page[LivePrimitiveShown]):
    """One page of the primitives of a live source."""


def _shared_fields(overview: LiveOverview) -> dict[str, Any]:
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
        "sessions": LiveSessions.PER_CALLER if source.kind is LiveKind.MCP else LiveSessions.SHARED,
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
    """Return the settings; each value of `env` becomes null, because it may be secret."""
    variables = as_object(source.settings.get("env"))
    if variables is None:
        return source.settings
    return {**source.settings, "env": dict.fromkeys(variables)}  # guard: live-env-shown
