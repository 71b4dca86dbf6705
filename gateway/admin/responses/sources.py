"""Response models of sources and their imports."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field, RootModel

from gateway.admin.responses.models import Page, ResponseModel
from gateway.domain.overrides import OverrideReport
from gateway.domain.sources import (
    Exposure,
    ImportChanges,
    ImportReport,
    ListedPrice,
    OperationChange,
    OperationRule,
    Source,
    Status,
)


class OperationShown(ResponseModel):
    """The outcome of one operation in an import."""

    method: str
    path: str
    operation_id: str | None
    tool: Annotated[str | None, Field(description="Null exactly when the operation was skipped.")]
    status: Status
    reasons: Sequence[str]


class CountsShown(ResponseModel):
    """The number of operations by status."""

    ok: int
    degraded: int
    skipped: int


class PriceShown(ResponseModel):
    """The cost of one tool in a client's list."""

    tool: str
    bytes: int
    estimated_tokens: Annotated[int, Field(description="About what that costs a model: bytes / 4.")]

    @classmethod
    def of(cls, price: ListedPrice) -> Self:
        """Build the response from a tool's cost."""
        return cls(tool=price.tool, bytes=price.size, estimated_tokens=price.estimated_tokens)


class OverrideReportShown(ResponseModel):
    """The outcome of one override in an import."""

    operation: Annotated[str, Field(description="Method and path that it belongs to.")]
    tool: Annotated[str | None, Field(description="The tool it applies to; null when there is none.")]
    applies: bool
    reasons: Annotated[Sequence[str], Field(description="Why it does not apply, or what of it does not.")]

    @classmethod
    def of(cls, report: OverrideReport) -> Self:
        """Build the response from the report of an override."""
        return cls(operation=report.identity, tool=report.tool, applies=report.applies, reasons=report.reasons)


class ReportShown(ResponseModel):
    """The report of an import: the outcome of every operation, and the cost of listing the tools."""

    operations: Sequence[OperationShown]
    counts: CountsShown
    warnings: Sequence[str]
    tools_listed: Annotated[
        int, Field(description="How many tools are listed for this source alone: its operations', the query tools.")
    ]
    tools_list_bytes: Annotated[
        int, Field(description='The length of `{"tools":[…]}` with all that is listed for this source alone.')
    ]
    estimated_tokens: Annotated[int, Field(description="About what that costs a model: bytes / 4.")]
    dearest: Annotated[
        Sequence[PriceShown], Field(description="The ten tools that weigh most in the list, the heaviest first.")
    ]
    overrides: Annotated[
        Sequence[OverrideReportShown], Field(description="What the import makes of each override of the source.")
    ]

    @classmethod
    def of(cls, report: ImportReport) -> Self:
        """Build the response from a report."""
        return cls(
            operations=[
                OperationShown(
                    method=operation.method,
                    path=operation.path,
                    operation_id=operation.operation_id,
                    tool=operation.tool,
                    status=operation.status,
                    reasons=operation.reasons,
                )
                for operation in report.operations
            ],
            counts=CountsShown(
                ok=report.count(Status.OK),
                degraded=report.count(Status.DEGRADED),
                skipped=report.count(Status.SKIPPED),
            ),
            warnings=report.warnings,
            tools_listed=report.tools_listed,
            tools_list_bytes=report.tools_list_bytes,
            estimated_tokens=report.estimated_tokens,
            dearest=[PriceShown.of(price) for price in report.dearest],
            overrides=[OverrideReportShown.of(override) for override in report.overrides],
        )


class ChangeShown(ResponseModel):
    """The change of one operation by a new import."""

    method: str
    path: str
    tool: str
    was: Annotated[str | None, Field(description="The name its tool had, where that was another one.")]
    recent_calls: Annotated[
        int | None, Field(description="Calls of a removed tool in the last seven days; null for other changes.")
    ]

    @classmethod
    def of(cls, change: OperationChange) -> Self:
        """Build the response from a change."""
        method, _, path = change.identity.partition(" ")
        return cls(method=method, path=path, tool=change.tool, was=change.was, recent_calls=change.recent_calls)


class ChangesShown(ResponseModel):
    """The differences from the tools of the previous version, by method and path."""

    added: Sequence[ChangeShown]
    removed: Sequence[ChangeShown]
    renamed: Sequence[ChangeShown]
    changed: Annotated[
        Sequence[ChangeShown], Field(description="Tools of the same name that list, send or are judged otherwise.")
    ]

    @classmethod
    def of(cls, changes: ImportChanges) -> Self:
        """Build the response from changes."""
        return cls(
            added=[ChangeShown.of(change) for change in changes.added],
            removed=[ChangeShown.of(change) for change in changes.removed],
            renamed=[ChangeShown.of(change) for change in changes.renamed],
            changed=[ChangeShown.of(change) for change in changes.changed],
        )


class OperationRuleShown(ResponseModel):
    """A rule for operations; an empty member matches everything."""

    operation_ids: Sequence[str]
    methods: Sequence[str]
    paths: Sequence[str]
    tags: Sequence[str]

    @classmethod
    def of(cls, rule: OperationRule) -> Self:
        """Build the response from a rule."""
        return cls(operation_ids=rule.operation_ids, methods=rule.methods, paths=rule.paths, tags=rule.tags)


class SourceShown(ResponseModel):
    """A source. Its credentials are shown only by the names of their security schemes."""

    id: str
    name: str
    title: str
    base_url: str | None
    prefix: str | None
    expose: Exposure
    include: Sequence[OperationRuleShown]
    exclude: Sequence[OperationRuleShown]
    output_schemas: bool
    url: str | None
    credentials: Annotated[Sequence[str], Field(description="Security schemes with a stored credential.")]
    active_version: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, source: Source) -> Self:
        """Build the response from a source."""
        return cls(
            id=source.id,
            name=source.name,
            title=source.title,
            base_url=source.base_url,
            prefix=source.prefix,
            expose=source.expose,
            include=[OperationRuleShown.of(rule) for rule in source.include],
            exclude=[OperationRuleShown.of(rule) for rule in source.exclude],
            output_schemas=source.output_schemas,
            url=source.url,
            credentials=source.schemes,
            active_version=source.active_version,
            created_at=source.created_at,
            updated_at=source.updated_at,
        )


class SourceImported(SourceShown):
    """A source with the report of its import and the changes of its tools."""

    report: ReportShown
    changes: Annotated[ChangesShown | None, Field(description="Null for the first import.")]

    @classmethod
    def with_report(cls, source: Source, report: ImportReport, changes: ChangesShown | None) -> Self:
        """Build the response from a source, its report and its changes."""
        return cls(**SourceShown.of(source).model_dump(), report=ReportShown.of(report), changes=changes)


class ImportTried(ResponseModel):
    """The report of a dry run, and the changes of tools that the import would make; nothing was stored."""

    name: str
    dry_run: Literal[True] = True
    report: ReportShown
    changes: Annotated[ChangesShown | None, Field(description="Null for a source that is not there yet.")]


class SourceChanged(RootModel[SourceImported | ImportTried]):
    """A changed source, or the report of a dry run."""


class SourcePage(Page[SourceShown]):
    """One page of a tenant's sources."""
