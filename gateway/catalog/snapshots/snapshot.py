"""A snapshot: the effective catalog of one tenant at one revision, made by `gateway.catalog.snapshots.snapshots`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from gateway.catalog.snapshots.access_table import UNRESTRICTED, AccessTable
from gateway.catalog.snapshots.composition import Renamed
from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.domain.listed.names import UNCHANGED, ListedNames
from gateway.domain.live_sources import LiveSource
from gateway.domain.primitives import Primitive
from gateway.domain.queries import QueriedSource
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.policy import Policy
from gateway.domain.tenancy.profiles import Profile
from gateway.domain.tools import Tool
from gateway.upstream.egress.allow_list import NOTHING, AllowList


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tenant's catalog at one revision; immutable.

    Each family is sorted by name and contains the effective primitives: the enabled stored ones, and the Python and
    live primitives that no name hides. The tools also include the query tools.
    """

    tenant: TenantId
    revision: int
    policy: Policy
    """The policy with its limits capped by their ceilings."""
    tools: tuple[Tool, ...]
    by_name: Mapping[str, Tool]
    slug: str = ""
    resources: tuple[Primitive, ...] = ()
    templates: tuple[Primitive, ...] = ()
    prompts: tuple[Primitive, ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=dict[str, Profile])
    code: int = 0
    """Generation of the Python primitives."""
    http_origins: frozenset[str] | None = None
    """The only origins that declared `http` handlers may contact; None permits all origins that egress control permits.
    """
    guardrails: tuple[Guardrail, ...] = ()
    """The guardrails in order, including disabled ones."""
    egress: AllowList = NOTHING
    """Private upstreams that the operator permits for this tenant."""
    operations: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict[str, Mapping[str, Tool]])
    """Enabled operations of all sources, including query-only sources, by source name, then by each of their names."""

    queried_live: Mapping[str, Mapping[str, Tool]] = field(default_factory=dict[str, Mapping[str, Tool]])
    """Tools of live sources that query tools show, by source name, then by identity."""
    queried: tuple[QueriedSource, ...] = ()
    """The sources that the query tools show, sorted by name."""
    unlisted: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """Imported tools by name that handlers may call but clients may not."""
    renamed: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Imported tools by their old names."""
    old_names: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict[tuple[str, str], Sequence[str]])
    """Old names of an imported tool, by its source's name and its own. Rules that name them still apply."""
    live_sources: Mapping[LiveSourceId, LiveSource] = field(default_factory=dict[LiveSourceId, LiveSource])
    """The enabled live sources with their declarations; their status contains only `can_subscribe`."""
    live_schemes: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """The schemes of the resources and templates that a live source lists, by the source's name."""
    page_tools: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Tools of live sources with pages: their names, by their names at their sources."""

    names: ListedNames = UNCHANGED
    """The names under which tools are listed, by the stored names of all tools of the tenant."""
    access: AccessTable = UNRESTRICTED
    """The access rules, compiled for the primitives of this snapshot."""

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: newer snapshots of a tenant are greater."""
        return self.revision, self.code

    def operation(self, source: str, key: str) -> Tool | None:
        """The operation of a source by its operationId, its `METHOD path`, its tool name or an old tool name."""
        return self.operations.get(source, {}).get(key)

    def called(self, old: str) -> Tool | None:
        """The imported tool that had this old name; None once the name has expired."""
        found = self.renamed.get(old)
        return None if found is None or found.until <= datetime.now(UTC) else found.tool  # guard: old-name-ends
