"""How an import differs from the version before."""

from dataclasses import replace

from gateway.catalog.sources.diff import compare
from gateway.domain.identifiers import OperationId, SourceId
from gateway.domain.sources import OperationChange, StoredOperation
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tools import PrimitiveOrigin, Tool

SOURCE = SourceId("src_1")


def stored(identity: str, tool: str) -> StoredOperation:
    """An operation as an import makes it."""
    return StoredOperation(
        id=OperationId(f"op_{tool}"),
        source=SOURCE,
        identity=identity,
        operation_id=None,
        tool=tool,
        definition=tool.encode(),
        plan=identity.encode(),
        safety=Safety.SAFE,
        tags=("a",),
    )


def listed(operation: StoredOperation) -> Tool:
    """The same as it was before."""
    return Tool(
        name=operation.tool,
        definition=operation.definition,
        safety=operation.safety,
        safety_reasons=(),
        origin=PrimitiveOrigin.SOURCE,
        operation=operation.id,
        source=operation.source,
        source_name="pets",
        identity=operation.identity,
        plan=operation.plan,
        tags=operation.tags,
    )


def test_operations_are_compared_by_identity() -> None:
    """Ours: added, removed, renamed and changed are told apart by method and path; what stays is not named (OAS-3)."""
    stays, goes, moves = stored("GET /a", "a"), stored("GET /b", "b"), stored("GET /c", "c")
    before = [listed(stays), listed(goes), listed(moves)]
    after = [stays, replace(moves, tool="other"), stored("GET /d", "d")]

    changes = compare(before, after)

    assert changes.added == (OperationChange(identity="GET /d", tool="d"),)
    assert changes.removed == (OperationChange(identity="GET /b", tool="b"),)
    assert changes.renamed == (OperationChange(identity="GET /c", tool="other", was="c"),)
    assert changes.changed == ()


def test_a_tool_that_lists_sends_or_is_judged_otherwise_is_changed() -> None:
    """Ours: no text, request, level or tag of a tool changes unseen (OAS-3)."""
    was = stored("GET /a", "a")
    variants = [
        replace(was, definition=b"x"),
        replace(was, plan=b"x"),
        replace(was, safety=Safety.DANGEROUS),
        replace(was, tags=()),
    ]

    assert all(
        compare([listed(was)], [now]).changed == (OperationChange(identity="GET /a", tool="a"),) for now in variants
    )
