"""Sources of imported primitives, their selection of operations, and the report on each operation."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.http.plans import Location, RequestPlan
from gateway.domain.identifiers import OperationId, SourceId, TenantId
from gateway.domain.members.formats import METHOD, PREFIX
from gateway.domain.members.markers import About, Bounds, Form, Length, Shape, StoredAs
from gateway.domain.members.values import Url
from gateway.domain.overrides import OverrideReport
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.recorded_fields import Concealed, Omitted
from gateway.domain.updates.source_changes import ImportChanges, TextFinding
from gateway.domain.updates.source_versions import RefreshPolicy, RefreshStatus

_BYTES_PER_TOKEN = 4


def estimate_tokens(size: int) -> int:
    """Estimate the tokens of this many bytes of JSON for a model; a rule of thumb, not a tokenizer."""
    return round(size / _BYTES_PER_TOKEN)


class Status(StrEnum):
    """Import status of one operation of a document."""

    OK = "ok"
    DEGRADED = "degraded"
    SKIPPED = "skipped"


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
class OperationReport:
    """Import result of one operation; `tool` is None exactly if it was skipped."""

    method: str
    path: str
    operation_id: str | None
    tool: str | None
    status: Status
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Parts that the listed definition omits; calls are not affected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedPrice:
    """Size of one tool in a client's list, in bytes."""

    tool: str
    size: int

    @property
    def estimated_tokens(self) -> int:
        """Estimated tokens of the tool for a model."""
        return estimate_tokens(self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCounts:
    """Numbers of a document's examples that fit, fit a relaxed schema, do not fit, or exceed a limit of the checks.

    An example of a request that does not fit is a note; one of a response removes its output schema.
    """

    accepted: int = 0
    relaxed: int = 0
    refused: int = 0
    unchecked: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialNeed:
    """Operations that one of several combinations of security schemes suffices for."""

    alternatives: tuple[tuple[str, ...], ...]
    operations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNeed:
    """A credential that a source lacks: its scheme, the operations that need it, and the ways to give one."""

    scheme: str
    operations: int
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextShare:
    """The share of a model's context that a list of tools uses; `share` is 1 if it uses all of it."""

    tokens: int
    share: float


CONTEXT_TOKENS = (32_000, 128_000, 200_000, 1_000_000)
"""Usual sizes of a model's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """Import results of every operation of a document, and the cost for a client to list them.

    `tools_list_bytes` is the length of `{"tools":[…]}` with all listed tools of this source. `listed` is the number of
    these tools (None in reports of an older version). `dearest` contains the largest tools, largest first.
    """

    operations: tuple[OperationReport, ...]
    warnings: tuple[str, ...]
    tools_list_bytes: int
    dearest: tuple[ListedPrice, ...] = ()
    overrides: tuple[OverrideReport, ...] = ()
    listed: int | None = None
    examples: ExampleCounts | None = None
    """Examples of requests; None in reports of an older version."""
    response_examples: ExampleCounts | None = None
    """Examples of responses; None if no output schemas are listed, and in reports of an older version."""
    findings: tuple[TextFinding, ...] = ()
    """Suspicious text of the document."""
    notes: tuple[str, ...] = ()
    """Remarks that take nothing from any tool: blemishes of the document, the size of the list, the policy."""
    credential_needs: tuple[CredentialNeed, ...] = ()
    """The credentials that operations need, whether they are stored or not; `needs` returns those that lack."""
    ways: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The ways to give a credential, by scheme."""

    def needs(self, stored: Collection[str]) -> tuple[SourceNeed, ...]:
        """Return the credentials that lack while those of the schemes `stored` are there.

        Of several alternatives, the one that lacks least is returned; its ways name the others.
        """
        operations: Counter[str] = Counter()
        ways: dict[str, dict[str, None]] = {}
        for need in self.credential_needs:
            lacking = [tuple(name for name in names if name not in stored) for names in need.alternatives]
            if not all(lacking):
                continue
            first, *others = sorted(dict.fromkeys(lacking), key=len)
            instead = [f"instead: a credential for {' and '.join(names)}" for names in others]
            for scheme in first:
                operations[scheme] += need.operations
                ways.setdefault(scheme, {}).update(dict.fromkeys((*self.ways.get(scheme, ()), *instead)))
        return tuple(
            SourceNeed(scheme=scheme, operations=number, ways=tuple(ways[scheme]))
            for scheme, number in operations.most_common()
        )

    @property
    def tools_listed(self) -> int:
        """Number of listed tools of this source."""
        return sum(one.tool is not None for one in self.operations) if self.listed is None else self.listed

    @property
    def contexts(self) -> tuple[ContextShare, ...]:
        """The estimated part of usual contexts that the list takes."""
        return tuple(ContextShare(tokens=size, share=round(self.estimated_tokens / size, 4)) for size in CONTEXT_TOKENS)

    @property
    def estimated_tokens(self) -> int:
        """Estimated tokens of the list for a model."""
        return estimate_tokens(self.tools_list_bytes)

    def count(self, status: Status) -> int:
        """Return the number of operations with this status."""
        return sum(operation.status is status for operation in self.operations)


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
    url: Annotated[Concealed[Url | None], About("The URL of the document; null if the document was uploaded.")] = None
    include: Annotated[
        tuple[OperationRule, ...],
        _MAX_ENTRIES,
        About(
            "Operations that match any of these rules are included; without rules, the extensions of the document "
            "decide."
        ),
        Shape.KEPT,
    ] = ()
    """An operation is selected if `include` is empty or one of its rules matches, and no rule of `exclude` matches."""
    exclude: Annotated[
        tuple[OperationRule, ...],
        _MAX_ENTRIES,
        About("Operations that match any of these rules are excluded."),
        Shape.KEPT,
    ] = ()
    output_schemas: Annotated[
        bool, About("True lists output schemas; a result that does not match its schema becomes an error.")
    ] = False
    parameters: Annotated[
        tuple[FilledParameter, ...],
        Length(most=20),
        About("Parameters that credentials fill in every request, whatever the document declares."),
        Shape.KEPT,
    ] = ()
    timeout_s: Annotated[
        float | None,
        Bounds(least=0.1, most=3600),
        About("Time limit of its calls in seconds, within the operator's maximum; null means the usual ones."),
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
    ] = None
    schemes: tuple[str, ...] = ()
    """Names of the security schemes with a stored credential; the credentials are not part of this value."""
    active_version: int
    version: int
    created_at: datetime
    updated_at: datetime
    refresh: Omitted[RefreshStatus] = field(default_factory=RefreshStatus)

    @property
    def status(self) -> SourceStatus:
        """The state that responses show."""
        seen = self.refresh.seen
        return SourceStatus(
            title=self.title,
            credentials=self.schemes,
            active_version=self.active_version,
            checked_at=seen.checked_at,
            changed_at=seen.changed_at,
            failures=seen.failures,
            fault=seen.fault,
            next_at=self.refresh.next_at,
            proposal=self.refresh.proposal,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOperation:
    """One operation as stored in the catalog; `plan` is the encoded request plan, decoded by the handler."""

    id: OperationId
    source: SourceId
    identity: str
    operation_id: str | None
    tool: str
    definition: bytes
    plan: bytes
    safety: Safety
    tags: tuple[str, ...] = ()
    input_schema: bytes | None = None
