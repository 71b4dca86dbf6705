"""Response models of sources, their imports, the versions of their documents, and the pending proposal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, RootModel

from gateway.domain.sources import Source
from gateway.domain.updates.import_reports import ImportReport, SourceNeed
from gateway.domain.updates.source_changes import ImportChanges
from gateway.domain.updates.source_versions import RefreshOutcome, SourceProposal, SourceVersion
from gateway.kinds.sources import SOURCE
from gateway.web.kinds.annotations import make_model, shown_model
from gateway.web.kinds.models import models_of
from gateway.web.models import CopiedModel, Page, ResponseModel

_NEED: Any = shown_model(SourceNeed)
_NEEDS = Annotated[Sequence[_NEED], Field(description="Credentials that the source lacks.")]

_Name = Annotated[str, Field(description="The name; unique in the tenant.")]

if TYPE_CHECKING:  # a derived class is no type for a checker
    ReportShown = CopiedModel
    ChangesShown = CopiedModel
    VersionShown = CopiedModel
    ProposalShown = CopiedModel
else:
    ReportShown = make_model(
        "ReportShown", shown_model(ImportReport), ImportReport.__doc__ or "", {"needs": (_NEEDS, ...)}
    )
    ChangesShown, VersionShown = shown_model(ImportChanges), shown_model(SourceVersion)
    ProposalShown = make_model(
        "ProposalShown", shown_model(SourceProposal), SourceProposal.__doc__ or "", {"name": (_Name, ...)}
    )


class VersionPage(Page[VersionShown]):
    """One page of a source's stored versions, the newest first."""


class SourceRefreshed(ResponseModel):
    """The outcome of a refresh of a source."""

    name: _Name
    outcome: Annotated[
        RefreshOutcome,
        Field(
            description="`unchanged`: the URL still has the active document. `proposed`: a proposal was stored. "
            "`activated`: the change was activated. `withdrawn`: the URL has the active document again, and the "
            "proposal was removed. `failed`: the document could not be read or may not be proposed."
        ),
    ]
    active_version: Annotated[int, Field(description="The number of the active version.")]
    proposal: Annotated[
        ProposalShown | None, Field(description="The pending proposal after the refresh; null if there is none.")
    ]


if TYPE_CHECKING:

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


class ProposalMade(RootModel[ProposalShown | ImportTried]):
    """A proposal, or the report of a dry run."""
