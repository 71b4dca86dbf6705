"""Response models of sources and their imports."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AliasPath, Field, RootModel

from gateway.admin.fields import EXCLUDE, INCLUDE, REFRESH_INTERVAL, REFRESH_POLICY, CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.source_changes import ChangesShown, TextFindingShown
from gateway.domain.http.plans import Location
from gateway.domain.sources import (
    Exposure,
    ImportReport,
    Source,
    Status,
)
from gateway.domain.updates.source_versions import RefreshPolicy
from gateway.web.models import CopiedModel, Page, ResponseModel


def _seen(name: str) -> Any:
    """Return a field whose value is an attribute of `seen`."""
    return Field(validation_alias=AliasPath("seen", name))


class OperationShown(CopiedModel):
    """The outcome of one operation in an import."""

    method: Annotated[str, Field(description="The HTTP method.")]
    path: Annotated[str, Field(description="The path, as written in the document.")]
    operation_id: Annotated[str | None, Field(description="The operationId; null if the document has none.")]
    tool: Annotated[str | None, Field(description="The name of the tool; null if the operation was skipped.")]
    status: Annotated[
        Status, Field(description="The result: `ok`, `degraded` (the tool lacks parts of the operation) or `skipped`.")
    ]
    reasons: Annotated[Sequence[str], Field(description="The reasons for a degraded or skipped operation.")]
    notes: Annotated[
        Sequence[str],
        Field(description="Parts that are omitted from the list entry of the tool, but remain valid in calls."),
    ]


class ContextShown(CopiedModel):
    """The share of a model's context that a list uses."""

    tokens: Annotated[int, Field(description="The size of the context, in tokens.")]
    share: Annotated[
        float, Field(description="The estimated share of the context that the list uses; 1 is the whole context.")
    ]


class CountsShown(ResponseModel):
    """The number of operations by status."""

    ok: Annotated[int, Field(description="The number of operations imported completely.")]
    degraded: Annotated[int, Field(description="The number of operations whose tool lacks parts of the operation.")]
    skipped: Annotated[int, Field(description="The number of operations without a tool.")]


class PriceShown(CopiedModel):
    """The cost of one tool in a client's list."""

    tool: Annotated[str, Field(description="The name of the tool.")]
    bytes: Annotated[int, Field(validation_alias="size", description="The size of the tool's list entry in bytes.")]
    estimated_tokens: Annotated[int, Field(description="The estimated cost in tokens: bytes / 4.")]


class OverrideReportShown(CopiedModel):
    """The outcome of one override in an import."""

    operation: Annotated[str, Field(validation_alias="identity", description="The operation: method and path.")]
    tool: Annotated[str | None, Field(description="The tool of the override; null if there is none.")]
    applies: Annotated[bool, Field(description="True if the override applies.")]
    reasons: Annotated[
        Sequence[str], Field(description="The reasons that the override, or a part of it, does not apply.")
    ]


class ExamplesShown(CopiedModel):
    """Counts of examples in the document, by the result of validation against the listed schemas."""

    accepted: Annotated[int, Field(description="Examples that conform to the listed schemas.")]
    relaxed: Annotated[
        int, Field(description="Examples that conform only because a keyword that they violate is not checked.")
    ]
    refused: Annotated[
        int,
        Field(description="Examples that do not conform; each is a note, or removes an output schema."),
    ]
    unchecked: Annotated[
        int, Field(description="Examples that were not checked, because they are too large or too numerous.")
    ]


class NeedShown(CopiedModel):
    """A credential that the source lacks."""

    kind: Annotated[Literal["credential"], Field(description="Always `credential`.")] = "credential"
    scheme: Annotated[str, Field(description="The security scheme under which the credential is stored.")]
    operations: Annotated[int, Field(description="The number of operations that need it.")]
    ways: Annotated[Sequence[str], Field(description="The ways to give one, as options of the command line.")]


class ReportShown(ResponseModel):
    """The report of an import: the outcome of every operation, and the cost of listing the tools."""

    operations: Annotated[Sequence[OperationShown], Field(description="The result for each operation of the document.")]
    counts: Annotated[CountsShown, Field(description="The number of operations by result.")]
    needs: Annotated[Sequence[NeedShown], Field(description="Credentials that the source lacks.")]
    notes: Annotated[
        Sequence[str],
        Field(
            description="Remarks that take nothing from a tool: blemishes of the document, names that differ from it, "
            "the size of the list, and levels of safety that run unconfirmed."
        ),
    ]
    warnings: Annotated[Sequence[str], Field(description="Parts of the document that are lost.")]
    findings: Annotated[
        Sequence[TextFindingShown], Field(description="Suspicious passages of the document, at most 200.")
    ]
    tools_listed: Annotated[
        int,
        Field(description="The number of listed tools: the tools of this source's operations, and the query tools."),
    ]
    tools_list_bytes: Annotated[
        int, Field(description='The size in bytes of `{"tools":[…]}` with the listed tools of this source.')
    ]
    estimated_tokens: Annotated[int, Field(description="The estimated cost in tokens: bytes / 4.")]
    contexts: Annotated[
        Sequence[ContextShown], Field(description="The share of typical model contexts that the list uses.")
    ]
    dearest: Annotated[
        Sequence[PriceShown], Field(description="The ten tools with the largest list entries, largest first.")
    ]
    overrides: Annotated[
        Sequence[OverrideReportShown], Field(description="The effect of the import on each override of the source.")
    ]
    examples: Annotated[
        ExamplesShown | None,
        Field(description="Examples of requests; null in reports of an import by an older release."),
    ]
    response_examples: Annotated[
        ExamplesShown | None,
        Field(description="Examples of responses; null without listed output schemas."),
    ]

    @classmethod
    def of(cls, report: ImportReport, schemes: Collection[str]) -> Self:
        """Build the response from a report; `schemes` have a stored credential."""
        return cls(
            operations=[OperationShown.of(operation) for operation in report.operations],
            counts=CountsShown(
                ok=report.count(Status.OK),
                degraded=report.count(Status.DEGRADED),
                skipped=report.count(Status.SKIPPED),
            ),
            needs=[NeedShown.of(need) for need in report.needs(schemes)],
            notes=report.notes,
            warnings=report.warnings,
            findings=[TextFindingShown.of(one) for one in report.findings],
            tools_listed=report.tools_listed,
            tools_list_bytes=report.tools_list_bytes,
            estimated_tokens=report.estimated_tokens,
            contexts=[ContextShown.of(context) for context in report.contexts],
            dearest=[PriceShown.of(price) for price in report.dearest],
            overrides=[OverrideReportShown.of(override) for override in report.overrides],
            examples=ExamplesShown.of(report.examples) if report.examples else None,
            response_examples=ExamplesShown.of(report.response_examples) if report.response_examples else None,
        )


class OperationRuleShown(CopiedModel):
    """A rule for operations; an empty member matches everything."""

    operation_ids: Annotated[Sequence[str], Field(description="Shell patterns of operationIds.")]
    methods: Annotated[Sequence[str], Field(description="HTTP methods of imported operations.")]
    paths: Annotated[Sequence[str], Field(description="Shell patterns of paths.")]
    tags: Annotated[Sequence[str], Field(description="Tags of imported operations.")]


class FilledParameterShown(CopiedModel):
    """A parameter that a stored credential fills in every request."""

    location: Annotated[Location, Field(description="The location of the parameter.")]
    name: Annotated[str, Field(description="The name of the header, query parameter, cookie or placeholder.")]
    credential: Annotated[str, Field(description="The name of the credential among those of the source.")]


class RefreshShown(CopiedModel):
    """The refresh state of a source, and the pending proposal."""

    checked_at: Annotated[datetime | None, _seen("checked_at"), Field(description="Time of the last refresh.")]
    changed_at: Annotated[
        datetime | None, _seen("changed_at"), Field(description="Time of the last refresh that found a change.")
    ]
    failures: Annotated[int, _seen("failures"), Field(description="The number of consecutive failed refreshes.")]
    fault: Annotated[str | None, _seen("fault"), Field(description="The reason why the last refresh failed.")]
    next_at: Annotated[
        datetime | None, Field(description="Time of the next scheduled refresh; null without a schedule.")
    ]
    proposal: Annotated[
        int | None, Field(description="The version number of the pending proposal; null if there is none.")
    ]


class SourceShown(CopiedModel):
    """A source. Its credentials are shown only by the names of their security schemes."""

    id: Id
    name: Name
    title: Annotated[str, Field(description="The title in the document.")]
    base_url: Annotated[
        str | None, Field(description="The base URL of requests; null means the servers of the document.")
    ]
    prefix: Annotated[str | None, Field(description="The prefix of every tool name of the source; null if none.")]
    expose: Annotated[
        Exposure,
        Field(description="`tools`: operations are listed as tools; `query`: the query tools call them; or `both`."),
    ]
    include: Annotated[Sequence[OperationRuleShown], INCLUDE]
    exclude: Annotated[Sequence[OperationRuleShown], EXCLUDE]
    output_schemas: Annotated[
        bool,
        Field(
            description="True if output schemas are listed; a result that does not match its schema becomes an error."
        ),
    ]
    url: Annotated[str | None, Field(description="The URL of the document; null if the document was uploaded.")]
    credentials: Annotated[
        Sequence[str], Field(validation_alias="schemes", description="Security schemes with a stored credential.")
    ]
    parameters: Annotated[
        Sequence[FilledParameterShown], Field(description="Parameters that stored credentials fill in every request.")
    ]
    timeout_s: Annotated[
        float | None, Field(description="Time limit of its calls in seconds; null means the usual limits.")
    ]
    active_version: Annotated[int, Field(description="The version of the document in use; every import increases it.")]
    refresh_policy: Annotated[RefreshPolicy, REFRESH_POLICY]
    refresh_interval_s: Annotated[int | None, REFRESH_INTERVAL]
    refresh: Annotated[
        RefreshShown,
        Field(description="The state of refreshes from the URL, and the pending proposal."),
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class SourceImported(SourceShown):
    """A source with the report of its import and the changes of its tools."""

    report: Annotated[ReportShown, Field(description="The result for every operation, and the cost of the tools.")]
    changes: Annotated[ChangesShown | None, Field(description="The changes; null for the first import.")]

    @classmethod
    def with_report(cls, source: Source, report: ReportShown, changes: ChangesShown | None) -> Self:
        """Build the response from a source, its report and its changes."""
        return cls(**SourceShown.of(source).model_dump(), report=report, changes=changes)


class ImportTried(ResponseModel):
    """The report of a dry run, and the changes of tools that the import would make; nothing was stored."""

    name: Annotated[str, Field(description="The name of the source.")]
    dry_run: Annotated[Literal[True], Field(description="Always true: nothing was stored.")] = True
    report: Annotated[ReportShown, Field(description="The result for every operation, and the cost of the tools.")]
    changes: Annotated[ChangesShown | None, Field(description="The changes; null for a new source.")]


class SourceChanged(RootModel[SourceImported | ImportTried]):
    """A changed source, or the report of a dry run."""


class SourcePage(Page[SourceShown]):
    """One page of a tenant's sources."""
