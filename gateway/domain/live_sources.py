"""Live sources: programs whose tools, resources and prompts exist while they are attached to the gateway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.json_access import as_object
from gateway.domain.members.formats import PREFIX
from gateway.domain.members.markers import (
    About,
    Check,
    Form,
    Length,
    Option,
    Setter,
    Shape,
    StoredAs,
    Veil,
)
from gateway.domain.members.values import CredentialName, check_printable
from gateway.domain.primitives import Family
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed, Omitted
from gateway.domain.updates.source_changes import TextFinding

PAGES_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The extension of MCP Apps (SEP-1865): clients that show pages of servers declare it."""
PAGE_TYPE: Final = "text/html;profile=mcp-app"


class LiveKind(StrEnum):
    """The kinds of live sources."""

    MCP = "mcp"
    """Another MCP server, at a URL."""
    NEOVIM = "neovim"
    """An editor, at the address of its RPC socket."""
    AGENT = "agent"
    """A program that connects to the gateway with a key of the scope `provide`."""
    COMMAND = "command"
    """A program that the gateway starts with the operator's permission, and that supports MCP on its standard
    streams.
    """


class AttachmentState(StrEnum):
    """State of a live source's attachment."""

    DETACHED = "detached"
    """Not attached: new, disabled, or an agent that is not connected."""
    ATTACHED = "attached"
    FAILED = "failed"
    """The last attempt failed, or the attachment was lost; the next attempt is due at `retry_at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredPrimitive:
    """One primitive as listed by the live source: its name there, and the protocol's definition object, unchecked."""

    family: Family
    name: str
    definition: Mapping[str, object]
    page: str = ""
    """The digest of its contents, if it is a page of MCP Apps that could be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The primitives that a live source lists at one time. They are untrusted; the catalog validates each one
    separately.
    """

    primitives: Sequence[DiscoveredPrimitive] = ()
    title: str = ""
    """Name and version of the remote program, for people."""
    notices: Sequence[str] = ()
    """Faults that the connector found, such as a tool without a handler."""
    can_subscribe: bool = False
    """True if the source reports updates of resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrimitive:
    """One primitive of a live source as tenants see it, with a name that is valid and unique in the source.

    `remote` is its name at the source. `digest` covers the definition. While `is_held` is True, the definition differs
    from the accepted one, and clients do not see the primitive. `safety` is the assessed level; `LiveSource.safety`
    contains declared ones.
    """

    family: Family
    name: str
    remote: str
    definition: bytes
    safety: Safety
    safety_reasons: Annotated[tuple[str, ...], StoredAs("reasons")]
    digest: str
    is_held: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedPrimitive:
    """A primitive as last discovered, and its accepted definition. It is kept while its source is detached.

    `accepted_digest` is None until the definition is accepted for the first time. `accepted_definition` is the accepted
    definition while another one is held.
    """

    primitive: LivePrimitive
    accepted_digest: str | None = None
    accepted_definition: bytes | None = None
    is_present: bool = True
    findings: tuple[TextFinding, ...] = ()
    """Suspicious texts of the definition."""

    @property
    def is_offered(self) -> bool:
        """True if clients see the primitive, provided that its name is free."""
        return self.is_present and not self.primitive.is_held


class LiveSessions(StrEnum):
    """Ways in which callers share a session at a live source."""

    PER_CALLER = "per_caller"
    SHARED = "shared"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCounts:
    """Counts of a live source's primitives: visible ones by family, hidden and unreviewed ones in total."""

    tools: Annotated[int, About("The number of tools that clients see."), Shape.LISTED] = 0
    resources: Annotated[int, About("The number of resources that clients see."), Shape.LISTED] = 0
    templates: Annotated[int, About("The number of resource templates that clients see.")] = 0
    prompts: Annotated[int, About("The number of prompts that clients see."), Shape.LISTED] = 0
    held: Annotated[
        int, About("The number of primitives whose definition an admin has to accept first."), Shape.LISTED
    ] = 0
    hidden: Annotated[int, About("The number of primitives whose name another primitive of the tenant uses.")] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStatus:
    """The attachment of a live source: its state, and the results of the last discovery."""

    state: Annotated[AttachmentState, About("The state of the attachment."), Shape.LISTED] = AttachmentState.DETACHED
    attachment: str = ""
    """Identifier of the current attachment; every attachment has a new one."""
    replica: Annotated[str, About("The replica that holds the attachment; empty if the source is not attached.")] = ""
    title: Annotated[str, About("Name and version of the program, as it reports them.")] = ""
    since: Annotated[datetime | None, About("Time of the last change of state.")] = None
    fault: Annotated[
        str | None,
        About("The reason why the source is not attached; empty if it is attached or disabled."),
        Shape.LISTED,
    ] = None
    failures: Annotated[int, About("The number of consecutive failed attempts.")] = 0
    retry_at: Annotated[datetime | None, About("Time of the next attempt.")] = None
    notices: Annotated[tuple[str, ...], About("The reasons why primitives are missing or truncated.")] = ()
    can_subscribe: bool = False
    # The members below have no columns: they are computed when the source is shown.
    sessions: Annotated[
        LiveSessions,
        About(
            "`per_caller`: each caller has its own session at the source, if the source has sessions; `shared`: all "
            "callers of the tenant use one."
        ),
    ] = LiveSessions.SHARED
    primitives: Annotated[LiveCounts, About("The number of the source's primitives, by family and state.")] = (
        LiveCounts()
    )
    review: Annotated[
        tuple[str, ...],
        About(
            "The primitives that an admin has to review, at most 150: held, hidden by others, or with suspicious texts."
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEnd:
    """The end of an attachment, or a failed attempt to attach; without a fault, the program disconnected."""

    fault: str | None = None
    failures: int = 0
    """Attempts that failed in a row."""
    retry_at: datetime | None = None


_NO_TENANT = TenantId("")
"""The tenant of a live source that is not stored."""
RemoteName = Annotated[str, Length(least=1, most=256), Check(check_printable)]
RemotePattern = Annotated[str, Length(least=1, most=300), Check(check_printable)]


def veil_settings(settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings with null for each value of `env`, because it may be secret."""
    variables = as_object(settings.get("env"))
    if variables is None:
        return settings
    return {**settings, "env": dict.fromkeys(variables)}  # guard: live-env-shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """One live source of a tenant, as declared, and its status."""

    tenant: Annotated[TenantId, StoredAs("tenant_id")] = _NO_TENANT
    id: LiveSourceId
    name: str
    kind: Annotated[
        LiveKind,
        About("The kind of the live source; it cannot change."),
        Setter.CREATION,
        Option(is_special=True),
        Shape.LISTED,
    ]
    settings: Annotated[
        Concealed[Mapping[str, object]],
        About(
            "The settings of the kind; `GET /schemas/live_source_mcp` returns the JSON Schema for the kind `mcp`. "
            "Responses have null for each value of `env`; a null that is sent keeps the value while `argv` is the same."
        ),
        Option(is_special=True),
        Veil(veil_settings),
    ] = field(default_factory=dict[str, object])
    prefix: Annotated[
        str | None, Form(PREFIX), About("The prefix of the names of the source's tools and prompts; null if none.")
    ] = None
    credential: Annotated[CredentialName | None, About("The stored credential to send; only for the kind `mcp`.")] = (
        None
    )
    caller_credential: Annotated[
        CredentialName | None,
        About(
            "The credential of requests on behalf of a caller, which identifies the caller. Null: such requests send "
            "`credential`."
        ),
    ] = None
    include: Annotated[
        tuple[RemotePattern, ...],
        Length(most=100),
        About("Shell patterns of remote names to include; an empty list includes everything."),
    ] = ()
    exclude: Annotated[
        tuple[RemotePattern, ...], Length(most=100), About("Shell patterns of remote names to exclude.")
    ] = ()
    safety: Annotated[
        Mapping[RemoteName, Safety],
        Length(most=1_000),
        About("Safety levels by remote tool name; they replace the levels that the gateway assesses."),
        Option(metavar="TOOL=LEVEL", is_map=True),
    ] = field(default_factory=dict[str, Safety])
    accepts_changes: Annotated[
        bool | None,
        About(
            "True: new tools and changed definitions need no review. Null: true for the kinds `neovim` and `agent`, "
            "false for others."
        ),
        Option(older={"accepts_changes": "accept-changes/review-changes"}),
    ] = None
    expose: Annotated[
        Exposure,
        About(
            "The exposure of the source's tools: as tools, through the query tools, or both; other primitives are "
            "always listed."
        ),
    ] = Exposure.TOOLS
    enabled: Annotated[
        bool,
        About("False detaches the live source."),
        Option(older={"enabled": "enabled/disabled"}),
        Shape.LISTED,
    ] = True
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: Omitted[LiveStatus] = LiveStatus()
