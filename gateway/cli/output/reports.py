"""Text of an import report: the outcome of every operation, and the cost of the tools for a client."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from gateway.cli.input.json_fields import JsonObject, as_text, number_at, pick, text_at, to_list, to_objects
from gateway.cli.output.limits import MAX_EXAMPLES, MAX_NOTES, MAX_WARNINGS
from gateway.cli.output.printing import Shown, join
from gateway.cli.output.tables import clean, count, render_table, shorten, thousands
from gateway.domain.updates.import_reports import Status

_EXAMPLE_RESULTS = ("accepted", "relaxed", "refused", "unchecked")
_CONTEXT_TOKENS = 128_000
_NUMBERS = ("no", "one", "two", "three", "four", "five")
_REASON_WIDTH = 90


def count_tools(report: JsonObject) -> int:
    """Return the number of tools in a client's list."""
    return number_at(report, "tools_listed")


def render_totals(report: JsonObject) -> str:
    """Render the outcomes of the operations, the cost of the list of tools, and the examples of the document."""
    became = ", ".join(f"{thousands(number_at(report, 'counts', status))} {status}" for status in Status)
    return (
        f"{count(len(to_list(report.get('operations'))), 'operation')}: {became}\n"
        f"{count(count_tools(report), 'tool')}, {count(number_at(report, 'tools_list_bytes'), 'byte')} to list, "
        f"about {count(number_at(report, 'estimated_tokens'), 'token')} (estimate: bytes / 4)"
        f"{_render_context(report)}{_render_examples(report, 'examples', 'requests')}"
        f"{_render_examples(report, 'response_examples', 'responses')}"
    )


def _render_context(report: JsonObject) -> str:
    """Render the share of a typical model context that the list uses; empty for reports of an older release."""
    shares = {number_at(item, "tokens"): item.get("share") for item in to_objects(report.get("contexts"))}
    share = shares.get(_CONTEXT_TOKENS)
    return (
        f", {100 * share:.0f} % of a context of {thousands(_CONTEXT_TOKENS)}" if isinstance(share, int | float) else ""
    )


def _render_examples(report: JsonObject, member: str, kind: str) -> str:
    """Render a line with the counts of the examples of one kind; empty if the document has none."""
    counts = {name: number_at(report, member, name) for name in _EXAMPLE_RESULTS}
    if not any(counts.values()):
        return ""
    results = ", ".join(f"{thousands(number)} {name}" for name, number in counts.items())
    return f"\n{count(sum(counts.values()), 'example')} of {kind}: {results}"


def render_reasons(report: JsonObject) -> Shown:
    """Render needs, then degraded and skipped operations by reason, the most frequent first; then all remarks."""
    lines: list[str] = []
    for status in (Status.DEGRADED, Status.SKIPPED):
        groups = _group(to_objects(report.get("operations")), status)
        if groups:
            lines.append(f"{status}:")
            lines += [_render_group(reason, groups[reason]) for reason in sorted(groups, key=lambda r: -len(groups[r]))]
    findings = render_findings(report, limit=MAX_WARNINGS)
    remarks = render_warnings(report, limit=MAX_WARNINGS), render_notes(report, limit=MAX_NOTES)
    return join_parts(render_needs(report), "\n".join(lines), findings, *remarks)


def render_needs(report: JsonObject) -> str:
    """Render the credentials that the source lacks, with the ways to give each."""
    lines: list[str] = []
    for need in to_objects(report.get("needs")):
        ways = [clean(as_text(way)) for way in to_list(need.get("ways"))]
        number = _NUMBERS[len(ways)] if len(ways) < len(_NUMBERS) else str(len(ways))
        choice = f"{number} {'way' if len(ways) == 1 else 'ways'} to give one"
        operations = count(number_at(need, "operations"), "operation")
        lines.append(f"needs a {text_at(need, 'kind')}: {operations}, scheme {text_at(need, 'scheme')}, {choice}")
        lines += [f"  {way}" for way in ways]
    return "\n".join(lines)


def render_warnings(report: JsonObject, *, limit: int | None = None) -> str:
    """Render the losses of the document as a whole, at most `limit`."""
    return _render_list("warnings", report, limit)


def render_notes(report: JsonObject, *, limit: int | None = None) -> str:
    """Render the remarks that take nothing from a tool, at most `limit`; those about policy come first."""
    return _render_list("notes", report, limit)


def _render_list(member: str, report: JsonObject, limit: int | None) -> str:
    found = [clean(as_text(text)) for text in to_list(report.get(member))]
    if not found:
        return ""
    more = len(found) - len(found[:limit])
    ending = [f"  and {thousands(more)} more, in the full report"] if more else []
    return "\n".join([f"{member}:", *(f"  {text}" for text in found[:limit]), *ending])


def render_findings(report: JsonObject, *, limit: int | None = None) -> str:
    """Render the suspicious passages, at most `limit`: the kind and position of each, and the text around it."""
    found = to_objects(report.get("findings"))
    if not found:
        return ""
    more = len(found) - len(found[:limit])
    ending = [f"  and {thousands(more)} more, in the full report"] if more else []
    return "\n".join(["suspicious text (read them before agents do):", *map(_render_finding, found[:limit]), *ending])


def _render_finding(finding: JsonObject) -> str:
    pattern = text_at(finding, "pattern")
    kind = f"{text_at(finding, 'kind')}{f' ({pattern})' if pattern else ''}"
    where = " ".join(filter(None, (text_at(finding, "tool"), text_at(finding, "pointer"))))
    return clean(f"  {kind} in {where or 'the document'}: {text_at(finding, 'excerpt')}")


def render_operations(report: JsonObject) -> Shown:
    """Render one line for each operation."""
    rows = [
        (
            text_at(operation, "status"),
            text_at(operation, "method").upper(),
            text_at(operation, "path"),
            text_at(operation, "tool") or "-",
            "; ".join(as_text(reason) for reason in to_list(operation.get("reasons"))),
        )
        for operation in to_objects(report.get("operations"))
    ]
    return render_table(("status", "method", "path", "tool", "reasons"), rows)


def render_prices(report: JsonObject) -> Shown:
    """Render the most expensive tools as a table; empty without tools."""
    rows = [
        (text_at(price, "tool"), thousands(number_at(price, "bytes")), thousands(number_at(price, "estimated_tokens")))
        for price in to_objects(report.get("dearest"))
    ]
    return render_table(("largest tools", "bytes", "tokens (estimate)"), rows, numbers=(1, 2)) if rows else ""


def render_report(report: JsonObject) -> Shown:
    """Render the complete report: operations, suspicious text, remarks, the most expensive tools, totals and needs."""
    remarks = (render_findings(report), render_warnings(report), render_notes(report))
    totals = join_parts(render_totals(report), render_needs(report))
    return join_parts(render_operations(report), *remarks, render_prices(report), totals)


def join_parts(*parts: Shown) -> Shown:
    """Join paragraphs with an empty line between them; empty parts are omitted."""
    return join((part for part in parts if part), "\n\n")


def _group(operations: Iterable[JsonObject], status: Status) -> Mapping[str, Sequence[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for operation in operations:
        if operation.get("status") != status:
            continue
        place = f"{text_at(operation, 'method').upper()} {text_at(operation, 'path')}"
        for reason in to_list(pick(operation, "reasons")) or ["no reason given"]:
            groups[as_text(reason)].append(place)
    return groups


def _render_group(reason: str, places: Sequence[str]) -> str:
    more = f" and {thousands(len(places) - MAX_EXAMPLES)} more" if len(places) > MAX_EXAMPLES else ""
    examples = ", ".join(clean(place) for place in places[:MAX_EXAMPLES])
    return f"  {thousands(len(places)):>5}  {shorten(reason, _REASON_WIDTH)}\n         {examples}{more}"
