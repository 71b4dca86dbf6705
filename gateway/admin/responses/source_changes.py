"""Response models of the differences between two versions of a source."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.domain.updates.source_changes import (
    DifferenceKind,
    FindingKind,
    Impact,
    ImportChanges,
    OperationChange,
)
from gateway.web.models import CopiedModel, ResponseModel


class DifferenceShown(CopiedModel):
    """One difference; invisible characters in its excerpts are escaped."""

    kind: Annotated[DifferenceKind, Field(description="The kind of the difference.")]
    impact: Annotated[Impact, Field(description="`breaking`, `widening`, or `text` that agents read.")]
    pointer: Annotated[
        str, Field(description="JSON Pointer into the tool, its `request`, or the output of the query tools.")
    ]
    old: Annotated[str | None, Field(description="The former value; null if there was none.")]
    new: Annotated[str | None, Field(description="The new value; null if there is none.")]


class SensitiveChangeShown(CopiedModel):
    """A sensitive difference that several tools share."""

    kind: Annotated[DifferenceKind, Field(description="`host`, `credentials` or `safety`.")]
    old: Annotated[str | None, Field(description="The former value; null if there was none.")]
    new: Annotated[str | None, Field(description="The new value; null if there is none.")]
    tools: Annotated[int, Field(description="The number of tools with this difference.")]
    named: Annotated[Sequence[str], Field(description="The names of the first of these tools.")]


class TextFindingShown(CopiedModel):
    """A suspicious text for review by a person; it can be harmless."""

    kind: Annotated[FindingKind, Field(description="The kind of the finding.")]
    pattern: Annotated[str, Field(description="The pattern that was found; empty if the kind has none.")]
    tool: Annotated[str | None, Field(description="The tool that contains the text; null if no tool contains it.")]
    pointer: Annotated[
        str,
        Field(
            description="JSON Pointer into the tool, into the output of the query tools, or (#/…) into the document."
        ),
    ]
    excerpt: Annotated[str, Field(description="The text around the match, with invisible characters escaped.")]


class ChangeShown(ResponseModel):
    """The change of one operation by a new import."""

    method: Annotated[str, Field(description="The HTTP method.")]
    path: Annotated[str, Field(description="The path, as written in the document.")]
    tool: Annotated[str, Field(description="The name of the tool; for a removed tool, its former name.")]
    was: Annotated[str | None, Field(description="The former name of a renamed tool.")]
    moved: Annotated[str | None, Field(description="The former or new method and path of the same operationId.")]
    impacts: Annotated[Sequence[Impact], Field(description="The impacts of the differences, the most harmful first.")]
    differences: Annotated[Sequence[DifferenceShown], Field(description="The most harmful differences, at most 20.")]
    differences_left_out: Annotated[int, Field(description="The number of further differences.")]
    recent_calls: Annotated[
        int | None, Field(description="Calls of a removed tool in the last seven days; null for other changes.")
    ]

    @classmethod
    def of(cls, change: OperationChange) -> Self:
        """Build the response from a change."""
        method, _, path = change.identity.partition(" ")
        return cls(
            method=method,
            path=path,
            tool=change.tool,
            was=change.was,
            moved=change.moved,
            impacts=change.impacts,
            differences=[DifferenceShown.of(one) for one in change.differences],
            differences_left_out=change.left_out,
            recent_calls=change.recent_calls,
        )


class ChangesShown(ResponseModel):
    """The differences from the tools of the previous version, by method and path; the most harmful come first."""

    sensitive: Annotated[
        Sequence[SensitiveChangeShown], Field(description="Changed hosts, credentials and safety levels.")
    ]
    added: Annotated[Sequence[ChangeShown], Field(description="Operations with a new tool.")]
    removed: Annotated[Sequence[ChangeShown], Field(description="Operations whose tool is removed.")]
    renamed: Annotated[Sequence[ChangeShown], Field(description="Operations whose tool is renamed.")]
    changed: Annotated[
        Sequence[ChangeShown],
        Field(description="Tools of the same name with another definition, request or safety level."),
    ]
    document: Annotated[
        Sequence[DifferenceShown], Field(description="Differences in the output of the query tools, at most 200.")
    ]
    document_left_out: Annotated[int, Field(description="The number of further differences.")]
    findings: Annotated[
        Sequence[TextFindingShown], Field(description="Suspicious text that the previous version does not have.")
    ]
    is_additive: Annotated[
        bool,
        Field(description="True if tools are only added or widened, and no known tool has new or suspicious text."),
    ]

    @classmethod
    def of(cls, changes: ImportChanges) -> Self:
        """Build the response from changes."""
        return cls(
            sensitive=[SensitiveChangeShown.of(one) for one in changes.sensitive],
            added=[ChangeShown.of(change) for change in changes.added],
            removed=[ChangeShown.of(change) for change in changes.removed],
            renamed=[ChangeShown.of(change) for change in changes.renamed],
            changed=[ChangeShown.of(change) for change in changes.changed],
            document=[DifferenceShown.of(one) for one in changes.document],
            document_left_out=changes.document_left_out,
            findings=[TextFindingShown.of(one) for one in changes.findings],
            is_additive=changes.is_additive,
        )
