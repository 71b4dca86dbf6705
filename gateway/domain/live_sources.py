"""Live sources: programs whose tools, resources and prompts exist while they are attached to the gateway."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from gateway.domain.identifiers import LiveSourceId, TenantId
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
    safety_reasons: tuple[str, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStatus:
    """The attachment of a live source: its state, and the results of the last discovery."""

    state: AttachmentState = AttachmentState.DETACHED
    attachment: str = ""
    """Identifier of the current attachment; every attachment has a new one."""
    replica: str = ""
    """The replica that holds the attachment."""
    title: str = ""
    since: datetime | None = None
    """Time of the last change of state."""
    fault: str | None = None
    failures: int = 0
    retry_at: datetime | None = None
    notices: tuple[str, ...] = ()
    """Reasons why primitives are missing, for the source's author."""
    can_subscribe: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEnd:
    """The end of an attachment, or a failed attempt to attach; without a fault, the program disconnected."""

    fault: str | None = None
    failures: int = 0
    """Attempts that failed in a row."""
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSource:
    """One live source of a tenant, as declared, and its status.

    `settings` depends on the kind. `prefix` precedes the names of tools and prompts. `accepts_changes` is True if
    changed definitions need no review. `safety` contains levels that the tenant declared by remote tool name.
    """

    tenant: TenantId
    id: LiveSourceId
    name: str
    kind: LiveKind
    settings: Concealed[Mapping[str, object]] = field(default_factory=dict[str, object])
    prefix: str = ""
    credential: str | None = None
    caller_credential: str | None = None
    """The credential that names the caller, for requests on behalf of a caller; None means `credential`."""
    include: tuple[str, ...] = ()
    """Shell patterns of remote names; an empty tuple means all."""
    exclude: tuple[str, ...] = ()
    safety: Mapping[str, Safety] = field(default_factory=dict[str, Safety])
    accepts_changes: bool = False
    expose: Exposure = Exposure.TOOLS
    """Exposure of its tools; resources and prompts are always listed."""
    enabled: bool = True
    version: int = 1
    created_at: datetime
    updated_at: datetime
    status: Omitted[LiveStatus] = LiveStatus()
