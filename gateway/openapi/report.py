"""The report of an import: the status of each operation, the losses, and the size of its tools in `tools/list`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gateway.domain.json_text import decode_json
from gateway.domain.listed.client_limits import find_count_limits, find_limits
from gateway.domain.listed.definition import served_bytes
from gateway.domain.listed.names import ListedNames
from gateway.domain.updates.import_reports import ImportReport, ListedPrice, OperationReport, Status, estimate_tokens
from gateway.domain.updates.source_changes import TextFinding
from gateway.openapi.limits import MAX_REASONS
from gateway.openapi.operation.limits import LIST_BYTES
from gateway.openapi.operation.operations import Operation
from gateway.openapi.query.tools import DEFINITIONS

_DEAREST = 10
_CONTEXT = 128_000


def report_operation(operation: Operation, *, tool: str | None, reasons: Sequence[str]) -> OperationReport:
    """Report on one operation: skipped without a tool, degraded with reasons, else OK. Lists at most 20 reasons."""
    unique = list(dict.fromkeys(reasons))
    further = len(unique) - MAX_REASONS
    status = Status.SKIPPED if tool is None else Status.DEGRADED if unique else Status.OK
    shown = [*unique[:MAX_REASONS], f"{further} further reasons"] if further > 0 else unique
    return OperationReport(
        method=operation.method,
        path=operation.path,
        operation_id=operation.operation_id,
        tool=tool,
        status=status,
        reasons=tuple(shown),
    )


def report_import(
    operations: Sequence[OperationReport],
    listed: Mapping[str, bytes],
    warnings: Sequence[str],
    notes: Sequence[str] = (),
    *,
    findings: Sequence[TextFinding] = (),
) -> ImportReport:
    """Report on a whole document; `listed` contains the definitions that clients list, by name."""
    prices = [
        ListedPrice(tool=name, size=served_bytes(definition, is_imported=name not in DEFINITIONS))
        for name, definition in listed.items()
    ]
    commas = max(len(prices) - 1, 0)
    length = len(b'{"tools":[]}') + sum(price.size for price in prices) + commas
    return ImportReport(
        operations=tuple(operations),
        warnings=tuple(warnings),
        notes=(*_size_notes(length), *_client_notes(listed.values()), *notes),
        tools_list_bytes=length,
        listed=len(prices),
        dearest=tuple(sorted(prices, key=lambda price: (-price.size, price.tool))[:_DEAREST]),
        findings=tuple(findings),
    )


def _client_notes(definitions: Collection[bytes]) -> Sequence[str]:
    """Notes on the clients that refuse or shorten tools of the list, and on names that the list changes."""
    shown: list[dict[str, Any]] = [decode_json(definition) for definition in definitions]
    listed = ListedNames(tool["name"] for tool in shown)
    limits = find_limits(({**tool, "name": listed.listed(tool["name"])} for tool in shown), with_older=True)
    renamed = [tool["name"] for tool in shown if listed.listed(tool["name"]) != tool["name"]]
    found = [limit.sentence for limit in (*find_count_limits(len(shown)), *limits)]
    if renamed:
        example = f"{listed.listed(renamed[0])} for {renamed[0]}"
        number = f"{len(renamed)} tools are" if len(renamed) > 1 else "1 tool is"
        found.append(f"{number} listed under another name, which every client takes: {example}; calls take both")
    return found


def _size_notes(length: int) -> Sequence[str]:
    """Notes on a list that takes more than a quarter of a usual context."""
    tokens = estimate_tokens(length)
    if tokens <= _CONTEXT // 4:
        return ()
    share = f"about {tokens:,} tokens, {100 * tokens // _CONTEXT} % of a context of {_CONTEXT:,}"
    found = [f"the list of tools takes {share}; expose the source to the query tools, or choose operations"]
    if length > LIST_BYTES:
        kept = "descriptions of tools, and names and types of their arguments, take more than that"
        found.append(f"the list of tools has {length:,} bytes (limit {LIST_BYTES:,}); {kept}")
    return found
