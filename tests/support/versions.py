"""Two versions of one document, and their differences; for tests of the review."""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.domain.sources import Compilation
from gateway.domain.updates.source_changes import ComparedTool, ComparedVersion, ImportChanges, OperationChange
from gateway.openapi.compiler import compile_document
from gateway.openapi.options import ImportOptions
from gateway.openapi.review.changes import compare_versions


def compared(compilation: Compilation) -> ComparedVersion:
    """A compilation as the active version of a source."""
    return ComparedVersion(
        tools=tuple(
            ComparedTool(
                identity=one.identity,
                operation_id=one.operation_id,
                name=one.tool,
                definition=one.definition,
                plan=msgspec.json.encode(one.plan),
                safety=one.safety,
                tags=one.tags,
                input_schema=one.input_schema,
            )
            for one in compilation.operations
        ),
        outline=compilation.outline,
        findings=compilation.report.findings,
    )


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any], **options: Any) -> ImportChanges:
    """The changes that an import of `new` makes to a source with the document `old`."""
    before = compile_document(old, ImportOptions(**options))
    names = {one.identity: one.tool for one in before.operations}
    after = compile_document(new, ImportOptions(known_names=names, **options))
    return compare_versions(compared(before), after)


def summary(change: OperationChange) -> list[str]:
    """The differences of one tool, each as kind and pointer."""
    return [f"{one.kind} {one.pointer}" for one in change.differences]
