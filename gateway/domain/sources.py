"""Sources of imported primitives, and their selection of operations."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.http.plans import Location, RequestPlan
from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.members.formats import METHOD, PREFIX
from gateway.domain.members.markers import About, Bounds, Form, Length, Option, Shape, StoredAs
from gateway.domain.members.values import Url
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed, Omitted
from gateway.domain.updates.import_reports import ImportReport
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.source_versions import RefreshPolicy, RefreshStatus


class Exposure(StrEnum):
    """Exposure of a document's operations or a live source's tools: as tools, through query tools, or both."""

    TOOLS = "tools"
    QUERY = "query"
    BOTH = "both"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledParameter:
    """A parameter that a stored credential of the source fills in every request; the document need not declare it.

    In the path, it fills a placeholder of the document.
    """

    location: Annotated[
        Location,
        About("The location of the parameter; `path` fills the placeholder of this name where a path has it."),
    ]
    name: Annotated[
        str,
        Length(least=1, most=200),
        About("The name of the header, query parameter, cookie or placeholder."),
    ]
    credential: Annotated[str, Length(least=1, most=200), About("The name of the credential in `credentials`.")]


_Pattern = Annotated[str, Length(least=1, most=300)]
_MAX_ENTRIES = Length(most=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRule:
    """Conditions on an operation. All set members must match; a rule without any matches everything.

    `operation_ids` and `paths` are shell patterns, in which `*` also matches slashes.
    """

    operation_ids: Annotated[tuple[_Pattern, ...], _MAX_ENTRIES, About("Shell patterns of operationIds.")] = ()
    methods: Annotated[tuple[Annotated[str, Form(METHOD)], ...], _MAX_ENTRIES, About("HTTP methods, in any case.")] = ()
    paths: Annotated[
        tuple[_Pattern, ...],
        _MAX_ENTRIES,
        About("Shell patterns of paths as written in the document; `*` also matches slashes."),
    ] = ()
    tags: Annotated[tuple[_Pattern, ...], _MAX_ENTRIES, About("Tags, compared exactly.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledOperation:
    """One operation as a tool: its definition as listed (JSON bytes) and its request plan.

    `identity` is `METHOD path-template`; an operation with the same identity keeps its tool name in later imports.
    """

    identity: str
    method: str
    path: str
    operation_id: str | None
    tool: str
    definition: bytes
    plan: RequestPlan
    safety: Safety
    tags: tuple[str, ...] = ()
    input_schema: bytes | None = None
    """The full input schema (JSON bytes), if the definition has a shortened one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """Result of compiling a document for import."""

    title: str
    version: str
    operations: tuple[CompiledOperation, ...]
    report: ImportReport
    scheme_names: tuple[str, ...] = ()
    """Security schemes that the document declares; credentials are stored under these names."""
    outline: bytes = b""
    """The query tools' outline of the document, in stored form; empty if they were not enabled."""
    changes: ImportChanges | None = None
    """Differences from the version that the document was compared with, if any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """The document of a source, its credentials, the refreshes from its URL, and the pending proposal."""

    title: Annotated[str, About("The title in the document."), Shape.LISTED]
    credentials: Annotated[tuple[str, ...], About("Security schemes with a stored credential.")]
    active_version: Annotated[
        int, About("The version of the document in use; every import increases it."), Shape.LISTED
    ]
    checked_at: Annotated[datetime | None, About("Time of the last refresh.")]
    changed_at: Annotated[datetime | None, About("Time of the last refresh that found a change.")]
    failures: Annotated[int, About("The number of consecutive failed refreshes.")]
    fault: Annotated[str | None, About("The reason why the last refresh failed.")]
    next_at: Annotated[datetime | None, About("Time of the next scheduled refresh; null without a schedule.")]
    proposal: Annotated[
        int | None, About("The version number of the pending proposal; null if there is none."), Shape.LISTED
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One document of a tenant, and its active version."""

    tenant: Annotated[TenantId, StoredAs("tenant_id")]
    id: SourceId
    name: str
    title: str
    base_url: Annotated[
        Url | None, About("The base URL of requests; it replaces the servers of the document. Null: those servers.")
    ] = None
    prefix: Annotated[
        str | None, Form(PREFIX), About("The prefix of every tool name of the source; null means none."), Shape.LISTED
    ] = None
    expose: Annotated[
        Exposure,
        About("The exposure of operations: as tools, through the query tools, or both."),
        Shape.LISTED,
    ] = Exposure.TOOLS
    url: Annotated[
        Concealed[Url | None],
        About("The URL of the document; null if the document was uploaded."),
        Option(is_special=True),
    ] = None
    include: Annotated[
        tuple[OperationRule, ...],
        _MAX_ENTRIES,
        About(
            "Operations that match any of these rules are included; without rules, the extensions of the document "
            "decide."
        ),
        Shape.KEPT,
        Option(is_special=True),
    ] = ()
    """An operation is selected if `include` is empty or one of its rules matches, and no rule of `exclude` matches."""
    exclude: Annotated[
        tuple[OperationRule, ...],
        _MAX_ENTRIES,
        About("Operations that match any of these rules are excluded."),
        Shape.KEPT,
        Option(is_special=True),
    ] = ()
    output_schemas: Annotated[
        bool, About("True lists output schemas; a result that does not match its schema becomes an error.")
    ] = False
    parameters: Annotated[
        tuple[FilledParameter, ...],
        Length(most=20),
        About("Parameters that credentials fill in every request, whatever the document declares."),
        Shape.KEPT,
        Option(is_special=True),
    ] = ()
    timeout_s: Annotated[
        float | None,
        Bounds(least=0.1, most=3600),
        About("Time limit of its calls in seconds, within the operator's maximum; null means the usual ones."),
        Shape.DURATION,
    ] = None
    refresh_policy: Annotated[
        RefreshPolicy,
        About(
            "The handling of a changed document at the URL: `manual` proposes every change; `additions` activates "
            "changes that only add tools, or widen some without new text."
        ),
    ] = RefreshPolicy.MANUAL
    refresh_interval_s: Annotated[
        int | None,
        Bounds(least=1, most=30 * 86_400),
        About("Seconds between scheduled refreshes from the URL, varied by up to 10 %; null: no schedule."),
        Shape.DURATION,
        Option(nothing="never"),
    ] = None
    schemes: tuple[str, ...] = ()
    """Names of the security schemes with a stored credential; the credentials are not part of this value."""
    active_version: int
    version: int
    created_at: datetime
    updated_at: datetime
    refresh_status: Omitted[RefreshStatus] = field(default_factory=RefreshStatus)

    @property
    def status(self) -> SourceStatus:
        """The state that responses show."""
        seen = self.refresh_status.seen
        return SourceStatus(
            title=self.title,
            credentials=self.schemes,
            active_version=self.active_version,
            checked_at=seen.checked_at,
            changed_at=seen.changed_at,
            failures=seen.failures,
            fault=seen.fault,
            next_at=self.refresh_status.next_at,
            proposal=self.refresh_status.proposal,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOperation:
    """One operation as stored in the catalog; `plan` is the encoded request plan, decoded by the handler."""

    id: OperationId
    source: Annotated[SourceId, StoredAs("source_id")]
    identity: str
    operation_id: str | None
    tool: str
    definition: bytes
    plan: bytes
    safety: Safety
    tags: tuple[str, ...] = ()
    input_schema: bytes | None = None
