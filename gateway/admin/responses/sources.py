"""Response models of sources and their imports."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, RootModel

from gateway.admin.fields import EXCLUDE, INCLUDE, CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.models import CopiedModel, Page, ResponseModel
from gateway.domain.sources import (
    Exposure,
    ImportChanges,
    ImportReport,
    OperationChange,
    Source,
    Status,
)


class OperationShown(CopiedModel):
    """The outcome of one operation in an import."""

    method: Annotated[str, Field(description="The HTTP method.")]
    path: Annotated[str, Field(description="The path as the document writes it.")]
    operation_id: Annotated[str | None, Field(description="Its operationId in the document; null where it has none.")]
    tool: Annotated[str | None, Field(description="Null exactly when the operation was skipped.")]
    status: Annotated[Status, Field(description="Whether the operation became a tool whole, in part, or not at all.")]
    reasons: Annotated[Sequence[str], Field(description="Why, in words.")]


class CountsShown(ResponseModel):
    """The number of operations by status."""

    ok: Annotated[int, Field(description="Operations that became tools whole.")]
    degraded: Annotated[int, Field(description="Operations whose tool cannot do all that the operation can.")]
    skipped: Annotated[int, Field(description="Operations that became no tool.")]


class PriceShown(CopiedModel):
    """The cost of one tool in a client's list."""

    tool: Annotated[str, Field(description="The name of the tool.")]
    bytes: Annotated[int, Field(validation_alias="size", description="Bytes that it adds to the list.")]
    estimated_tokens: Annotated[int, Field(description="About what that costs a model: bytes / 4.")]


class OverrideReportShown(CopiedModel):
    """The outcome of one override in an import."""

    operation: Annotated[str, Field(validation_alias="identity", description="Method and path that it belongs to.")]
    tool: Annotated[str | None, Field(description="The tool it applies to; null when there is none.")]
    applies: Annotated[bool, Field(description="Whether it is in force.")]
    reasons: Annotated[Sequence[str], Field(description="Why it does not apply, or what of it does not.")]


class ReportShown(ResponseModel):
    """The report of an import: the outcome of every operation, and the cost of listing the tools."""

    operations: Annotated[Sequence[OperationShown], Field(description="What became of each operation of the document.")]
    counts: Annotated[CountsShown, Field(description="How many there are of each.")]
    warnings: Annotated[Sequence[str], Field(description="What is worth knowing of the document as a whole.")]
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
            operations=[OperationShown.of(operation) for operation in report.operations],
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

    method: Annotated[str, Field(description="The HTTP method.")]
    path: Annotated[str, Field(description="The path as the document writes it.")]
    tool: Annotated[str, Field(description="The name of its tool; of a removed one, the name that it had.")]
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

    added: Annotated[Sequence[ChangeShown], Field(description="Operations that have a tool now and had none.")]
    removed: Annotated[Sequence[ChangeShown], Field(description="Operations that had a tool and have none now.")]
    renamed: Annotated[Sequence[ChangeShown], Field(description="Operations whose tool has another name.")]
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


class OperationRuleShown(CopiedModel):
    """A rule for operations; an empty member matches everything."""

    operation_ids: Annotated[Sequence[str], Field(description="Shell patterns over the operationId.")]
    methods: Annotated[Sequence[str], Field(description="HTTP methods of imported operations.")]
    paths: Annotated[Sequence[str], Field(description="Shell patterns over the path.")]
    tags: Annotated[Sequence[str], Field(description="Tags of imported operations.")]


class SourceShown(CopiedModel):
    """A source. Its credentials are shown only by the names of their security schemes."""

    id: Id
    name: Name
    title: Annotated[str, Field(description="What the document calls itself.")]
    base_url: Annotated[
        str | None, Field(description="Where requests go instead of the servers that the document names; null: there.")
    ]
    prefix: Annotated[str | None, Field(description="Put in front of every tool name of the source; null: nothing.")]
    expose: Annotated[
        Exposure, Field(description="Whether operations are tools, are reached through the query tools, or both.")
    ]
    include: Annotated[Sequence[OperationRuleShown], INCLUDE]
    exclude: Annotated[Sequence[OperationRuleShown], EXCLUDE]
    output_schemas: Annotated[
        bool, Field(description="Whether tools list what they answer, and answers are held to it.")
    ]
    url: Annotated[str | None, Field(description="Where the document was fetched; null where it was sent.")]
    credentials: Annotated[
        Sequence[str], Field(validation_alias="schemes", description="Security schemes with a stored credential.")
    ]
    active_version: Annotated[
        int, Field(description="The number of the document that is in force; rises with every import.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class SourceImported(SourceShown):
    """A source with the report of its import and the changes of its tools."""

    report: Annotated[ReportShown, Field(description="What became of every operation, and what the tools cost.")]
    changes: Annotated[ChangesShown | None, Field(description="Null for the first import.")]

    @classmethod
    def with_report(cls, source: Source, report: ImportReport, changes: ChangesShown | None) -> Self:
        """Build the response from a source, its report and its changes."""
        return cls(**SourceShown.of(source).model_dump(), report=ReportShown.of(report), changes=changes)


class ImportTried(ResponseModel):
    """The report of a dry run, and the changes of tools that the import would make; nothing was stored."""

    name: Annotated[str, Field(description="The name that the source would have.")]
    dry_run: Annotated[Literal[True], Field(description="Always true: nothing was stored.")] = True
    report: Annotated[ReportShown, Field(description="What became of every operation, and what the tools cost.")]
    changes: Annotated[ChangesShown | None, Field(description="Null for a source that is not there yet.")]


class SourceChanged(RootModel[SourceImported | ImportTried]):
    """A changed source, or the report of a dry run."""


class SourcePage(Page[SourceShown]):
    """One page of a tenant's sources."""
