"""Response models of sources and their imports."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, RootModel

from gateway.admin.responses.source_changes import ChangesShown, TextFindingShown
from gateway.domain.sources import ImportReport, Source, Status
from gateway.kinds.sources import SOURCE
from gateway.web.kinds.annotations import make_model
from gateway.web.kinds.models import models_of
from gateway.web.models import CopiedModel, ResponseModel


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


if TYPE_CHECKING:  # a derived class is no type for a checker

    class SourceImported(ResponseModel):
        """A source with the report of its import and the changes of its tools."""

else:
    SourceImported = make_model(
        "SourceImported",
        models_of(SOURCE).shown,
        "A source with the report of its import and the changes of its tools.",
        {
            "report": (
                Annotated[ReportShown, Field(description="The result for every operation, and the cost of the tools.")],
                ...,
            ),
            "changes": (
                Annotated[ChangesShown | None, Field(description="The changes; null for the first import.")],
                ...,
            ),
        },
    )


def show_source(source: Source) -> ResponseModel:
    """The response with a source."""
    return models_of(SOURCE).show(source, source.status)


def show_imported(source: Source, report: ReportShown, changes: ChangesShown | None) -> SourceImported:
    """The response with a source, its report and its changes."""
    members = {**show_source(source).model_dump(), "report": report, "changes": changes}
    return SourceImported.model_validate(members)


class ImportTried(ResponseModel):
    """The report of a dry run, and the changes of tools that the import would make; nothing was stored."""

    name: Annotated[str, Field(description="The name of the source.")]
    dry_run: Annotated[Literal[True], Field(description="Always true: nothing was stored.")] = True
    report: Annotated[ReportShown, Field(description="The result for every operation, and the cost of the tools.")]
    changes: Annotated[ChangesShown | None, Field(description="The changes; null for a new source.")]


class SourceChanged(RootModel[SourceImported | ImportTried]):
    """A changed source, or the report of a dry run."""
