"""An import report as a person reads it: what became of every operation, and what the tools cost a client."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from gateway.cli.fields import JsonObject, as_list, as_objects, as_text, number_at, pick, text_at
from gateway.cli.tables import clean, render_table, shorten, thousands
from gateway.domain.sources import Status

_BYTES_PER_TOKEN = 4
_DEAREST = 10
_EXAMPLES = 3
_WARNINGS = 5
_REASON_WIDTH = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one tool costs in a client's list."""

    tool: str
    size: int

    @classmethod
    def of(cls, definition: object) -> Self:
        """The price of a definition, as compact JSON."""
        encoded = json.dumps(definition, separators=(",", ":"), ensure_ascii=False).encode(errors="replace")
        return cls(tool=text_at(definition, "name"), size=len(encoded))


def estimate_tokens(size: int) -> int:
    """About how many tokens so many bytes of JSON are; a rule of thumb, no tokenizer."""
    return round(size / _BYTES_PER_TOKEN)


def dearest(definitions: Iterable[object]) -> Sequence[Price]:
    """The tools that cost most, the dearest first."""
    prices = [Price.of(definition) for definition in definitions]
    return sorted(prices, key=lambda price: (-price.size, price.tool))[:_DEAREST]


def count_tools(report: JsonObject) -> int:
    """How many operations became tools."""
    return sum(operation.get("tool") is not None for operation in as_objects(report.get("operations")))


def render_totals(report: JsonObject) -> str:
    """Two lines: what became of the operations, and the price of the tools' list."""
    counts = [(status, number_at(report, "counts", status)) for status in Status]
    total = thousands(len(as_list(report.get("operations"))))
    size = number_at(report, "tools_list_bytes")
    return (
        f"{total} operations: {', '.join(f'{thousands(count)} {status}' for status, count in counts)}\n"
        f"{thousands(count_tools(report))} tools, {thousands(size)} bytes to list, "
        f"about {thousands(estimate_tokens(size))} tokens (estimate: bytes / {_BYTES_PER_TOKEN})"
    )


def render_reasons(report: JsonObject) -> str:
    """The operations that are not fully there, grouped by reason, the most frequent first; then some warnings."""
    lines: list[str] = []
    for status in (Status.DEGRADED, Status.SKIPPED):
        groups = _group(as_objects(report.get("operations")), status)
        if groups:
            lines.append(f"{status}:")
            lines += [_render_group(reason, groups[reason]) for reason in sorted(groups, key=lambda r: -len(groups[r]))]
    return join_parts("\n".join(lines), render_warnings(report, most=_WARNINGS))


def render_warnings(report: JsonObject, *, most: int | None = None) -> str:
    """The warnings, those about what may be called first, at most so many."""
    warnings = [clean(as_text(warning)) for warning in as_list(report.get("warnings"))]
    shown = sorted(warnings, key=lambda warning: not warning.startswith("policy:"))[:most]
    if not shown:
        return ""
    more = len(warnings) - len(shown)
    ending = [f"  and {thousands(more)} more, in the full report"] if more else []
    return "\n".join(["warnings:", *(f"  {warning}" for warning in shown), *ending])


def render_operations(report: JsonObject) -> str:
    """Every operation on a line."""
    rows = [
        (
            text_at(operation, "status"),
            text_at(operation, "method").upper(),
            text_at(operation, "path"),
            text_at(operation, "tool") or "-",
            "; ".join(as_text(reason) for reason in as_list(operation.get("reasons"))),
        )
        for operation in as_objects(report.get("operations"))
    ]
    return render_table(("status", "method", "path", "tool", "reasons"), rows)


def render_prices(prices: Sequence[Price]) -> str:
    """The dearest tools as a table; nothing where there is no tool."""
    if not prices:
        return ""
    rows = [(price.tool, thousands(price.size), thousands(estimate_tokens(price.size))) for price in prices]
    return render_table(("dearest tools", "bytes", "tokens (estimate)"), rows, numbers=(1, 2))


def join_parts(*parts: str) -> str:
    """Parts of a text with an empty line between them; empty parts are left out."""
    return "\n\n".join(part for part in parts if part)


def _group(operations: Iterable[JsonObject], status: Status) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for operation in operations:
        if operation.get("status") != status:
            continue
        place = f"{text_at(operation, 'method').upper()} {text_at(operation, 'path')}"
        for reason in as_list(pick(operation, "reasons")) or ["no reason given"]:
            groups[as_text(reason)].append(place)
    return groups


def _render_group(reason: str, places: Sequence[str]) -> str:
    more = f" and {thousands(len(places) - _EXAMPLES)} more" if len(places) > _EXAMPLES else ""
    examples = ", ".join(clean(place) for place in places[:_EXAMPLES])
    return f"  {thousands(len(places)):>5}  {shorten(reason, _REASON_WIDTH)}\n         {examples}{more}"
