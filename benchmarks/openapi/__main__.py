"""Imports of real documents: operations, losses, bytes of the list, examples, and the cost of the child process.

`python -m benchmarks.openapi` prints a table of the documents of `../shared/specs`, or of the files and folders that
it is given. `--write` puts the table into `docs/openapi.md`. `--against TREE` runs the compiler of another checkout in
turn with this one, and prints ratios of CPU and memory.
"""

import argparse
import re
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import Table
from benchmarks.openapi.child import TREE, URL, DocumentFile, Run, read_files, run_child
from benchmarks.openapi.examples import Verdicts, judge, judge_responses, read_outputs, read_tools, reasons
from gateway.domain.sources import Compilation
from gateway.domain.updates.import_reports import Status
from gateway.openapi.document.document import read_tree
from gateway.openapi.options import ImportOptions

PAGE = TREE / "docs" / "openapi.md"
_MARKS = ("<!-- documents: begin -->", "<!-- documents: end -->")
_OPTIONS = ImportOptions(base_url=URL)
_WITH_OUTPUTS = ImportOptions(base_url=URL, output_schemas=True)
_COLUMNS = (
    "document",
    "version",
    "MB",
    "operations",
    "ok / degraded / skipped",
    "list KB",
    "largest tool KB",
    "examples",
    "accepted %",
    "of responses",
    "accepted %",
    "CPU s",
    "peak MB",
)
_REASON_COLUMNS = ("document", "operations", "reason")
_QUOTED = re.compile(r"'[^']*'|`[^`]*`")
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class Seen:
    """A document with its runs, of this tree and of the other one."""

    file: DocumentFile
    runs: list[Run] = field(default_factory=list[Run])
    others: list[Run] = field(default_factory=list[Run])


def main() -> None:
    """Measure the documents and print the table."""
    options = _options()
    rows: list[tuple[str, ...]] = []
    groups: list[tuple[str, ...]] = []
    kinds: Counter[str] = Counter()
    total, responses = Verdicts(), Verdicts()
    for file in read_files(options.documents):
        seen = _measure(file, options.rounds, options.against)
        row, judged, judged_responses, compilation = _row(seen)
        rows.append(row)
        if compilation is not None:
            groups += _groups(file.name, compilation, options.groups)
            kinds += Counter(reasons(judged.refused))
            total.include(judged)
            responses.include(judged_responses)
        if options.refused:
            _print_refused(seen.file.name, judged)
            _print_refused(seen.file.name, judged_responses)
        print(" | ".join(row), file=sys.stderr)
    share = 100 * total.accepted / max(total.count, 1)
    notes = [
        f"Examples: {total.accepted} of {total.count} accepted ({share:.2f} %), {_texts(total)}. Refused by: "
        + (", ".join(f"{name} {count}" for name, count in kinds.most_common()) or "nothing"),
        f"Of responses: {responses.accepted} of {responses.count} accepted by output schemas, {_texts(responses)}.",
    ]
    documents = Table(title="Documents", columns=_COLUMNS, rows=tuple(rows), notes=tuple(notes))
    reported = Table(title="Reasons", columns=_REASON_COLUMNS, rows=tuple(groups))
    print(f"{documents.render()}\n\n{reported.render()}")
    if options.write:
        write_page(documents, reported)


def _texts(judged: Verdicts) -> str:
    return f"{judged.texts} of them as the value of a JSON text"


def write_page(*tables: Table) -> None:
    """Replace the tables between their marks in the documentation."""
    text = PAGE.read_text()
    before, _, rest = text.partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    body = "\n\n".join(table.render().partition("\n\n")[2] for table in tables)
    PAGE.write_text(f"{before}{_MARKS[0]}\n\n{body}\n\n{_MARKS[1]}{after}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openapi", description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path, help="files or folders (default: ../shared/specs)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each document; the median is shown")
    parser.add_argument("--against", type=Path, help="another checkout, run in turn with this one")
    parser.add_argument("--refused", action="store_true", help="also print each refused example")
    parser.add_argument("--groups", type=int, default=3, help="number of groups of reasons of each document")
    parser.add_argument("--write", action="store_true", help="write the table into docs/openapi.md")
    return parser.parse_args()


def _measure(file: DocumentFile, rounds: int, against: Path | None) -> Seen:
    seen = Seen(file)
    for _ in range(rounds):
        seen.runs.append(run_child(file, _OPTIONS, TREE))
        if against is not None:
            seen.others.append(run_child(file, _OPTIONS, against))
    return seen


def _row(seen: Seen) -> tuple[tuple[str, ...], Verdicts, Verdicts, Compilation | None]:
    answer = seen.runs[0].answer
    size = f"{len(seen.file.raw) / 1e6:.2f}"
    if answer.refusal is not None or answer.crash is not None:
        reason = answer.refusal.message if answer.refusal is not None else "crashed"
        return (seen.file.name, "–", size, "–", f"refused: {reason[:90]}", *["–"] * 8), Verdicts(), Verdicts(), None
    compilation = answer.compilation()
    if compilation is None:
        raise RuntimeError(f"{seen.file.name}: the child returned no result")
    root: Any = read_tree(answer.document or seen.file.raw)
    judged = judge(root, read_tools(compilation))
    with_outputs = run_child(seen.file, _WITH_OUTPUTS, TREE).answer.compilation()
    responses = judge_responses(root, read_outputs(with_outputs)) if with_outputs is not None else Verdicts()
    report = compilation.report
    counts = " / ".join(str(report.count(status)) for status in Status)
    return (
        (
            seen.file.name,
            str(root.get("openapi", root.get("swagger"))),
            size,
            str(len(report.operations)),
            counts,
            f"{report.tools_list_bytes / 1000:,.0f}",
            f"{report.dearest[0].size / 1000:,.1f}" if report.dearest else "–",
            str(judged.count),
            _share(judged),
            str(responses.count),
            _share(responses),
            _compared([run.cpu_s for run in seen.runs], [run.cpu_s for run in seen.others], 2),
            _compared(_peaks(seen.runs), _peaks(seen.others), 0),
        ),
        judged,
        responses,
        compilation,
    )


def _share(judged: Verdicts) -> str:
    return f"{100 * judged.accepted / judged.count:.1f}" if judged.count else "–"


def _peaks(runs: Sequence[Run]) -> list[float]:
    return [run.answer.peak_bytes / 1e6 for run in runs]


def _compared(mine: Sequence[float], others: Sequence[float], digits: int) -> str:
    middle = statistics.median(mine)
    text = f"{middle:.{digits}f}"
    return f"{text} ({middle / statistics.median(others):.2f}×)" if others else text


def _groups(name: str, compilation: Compilation, most: int) -> list[tuple[str, ...]]:
    """Rows of a document's commonest reasons, without quoted names and numbers."""
    texts = (
        _NUMBER.sub("N", _QUOTED.sub("'…'", reason))
        for report in compilation.report.operations
        for reason in report.reasons
    )
    counts = Counter(texts).most_common()
    rows = [(name, str(count), reason) for reason, count in counts[:most]]
    rest = sum(count for _, count in counts[most:])
    return [*rows, *([(name, str(rest), "other reasons")] if rest else [])]


def _print_refused(name: str, judged: Verdicts) -> None:
    for tool, where, fault in judged.refused:
        print(f"{name}: {tool}: {where}: {fault}")


if __name__ == "__main__":
    main()
