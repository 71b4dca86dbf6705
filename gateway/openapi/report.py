"""What an import tells of a document: each operation's fate, the warnings, and what the tools cost to list."""

from collections.abc import Sequence

from gateway.domain.sources import CompiledOperation, ImportReport, OperationReport, Status
from gateway.openapi.operations import Operation

_MOST_REASONS = 20


def report_operation(operation: Operation, *, tool: str | None, reasons: Sequence[str]) -> OperationReport:
    """The fate of one operation: without a tool it was skipped, with reasons it is degraded."""
    unique = list(dict.fromkeys(reasons))
    further = len(unique) - _MOST_REASONS
    status = Status.SKIPPED if tool is None else Status.DEGRADED if unique else Status.OK
    shown = [*unique[:_MOST_REASONS], f"{further} further reasons"] if further > 0 else unique
    return OperationReport(
        method=operation.method,
        path=operation.path,
        operation_id=operation.operation_id,
        tool=tool,
        status=status,
        reasons=tuple(shown),
    )


def report_import(
    operations: Sequence[OperationReport], compiled: Sequence[CompiledOperation], warnings: Sequence[str]
) -> ImportReport:
    """The report of a whole document."""
    return ImportReport(
        operations=tuple(operations),
        warnings=tuple(warnings),
        tools_list_bytes=_tools_list_bytes(compiled),
    )


def _tools_list_bytes(compiled: Sequence[CompiledOperation]) -> int:
    commas = max(len(compiled) - 1, 0)
    return len(b'{"tools":[]}') + sum(len(operation.definition) for operation in compiled) + commas
