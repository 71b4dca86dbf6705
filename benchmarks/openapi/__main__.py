"""Imports of real documents: operations, losses, bytes of the list, examples, and the cost of the child process.

`python -m benchmarks.openapi` prints a table of the documents of `../shared/specs`, or of the files and folders that
it is given. `--write` puts the table into `docs/openapi.md`. `--against TREE` runs the compiler of another checkout in
turn with this one, and prints ratios of CPU and memory.
"""

import argparse
import gzip
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.figures import Table
from benchmarks.openapi.examples import Json, Verdicts, judge, reasons
from gateway.domain.sources import Compilation, Status
from gateway.openapi.document.document import read_tree
from gateway.openapi.options import DocumentForm, ImportOptions
from gateway.openapi.worker_messages import LENGTH_BYTES, Task, WorkerAnswer, decode_message, write_frame

TREE = Path(__file__).parents[2]
SPECS = TREE / ".." / "shared" / "specs"
PAGE = TREE / "docs" / "openapi.md"
_MARKS = ("<!-- documents: begin -->", "<!-- documents: end -->")
_OPTIONS = ImportOptions(base_url="https://api.example.com")
_ARCHIVES = (".tar.gz", ".tgz", ".zip")
_MEMORY = 1024**3
_CPU_S = 60
_START = "import sys; sys.path.insert(0, {tree!r}); from gateway.openapi.worker import main; main()"
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
    "CPU s",
    "peak MB",
)
_QUOTED = re.compile(r"'[^']*'|`[^`]*`")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the child process."""

    answer: WorkerAnswer
    cpu_s: float
    wall_s: float


@dataclass(slots=True)
class Seen:
    """A document with its runs, of this tree and of the other one."""

    name: str
    raw: bytes
    runs: list[Run] = field(default_factory=list[Run])
    others: list[Run] = field(default_factory=list[Run])


def main() -> None:
    """Measure the documents and print the table."""
    options = _options()
    rows: list[tuple[str, ...]] = []
    groups: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    total = Verdicts()
    for path in _paths(options.documents):
        seen = _measure(path, options.rounds, options.against)
        row, judged, compilation = _row(seen)
        rows.append(row)
        if compilation is not None:
            groups += _groups(compilation)
            kinds += Counter(reasons(judged.refused))
            total.accepted += judged.accepted
            total.refused += judged.refused
        if options.refused:
            _print_refused(seen.name, judged)
        print(" | ".join(row), file=sys.stderr)
    share = 100 * total.accepted / max(total.count, 1)
    notes = [
        f"Examples: {total.accepted} of {total.count} accepted ({share:.2f} %). Refused by: "
        + (", ".join(f"{name} {count}" for name, count in kinds.most_common()) or "nothing"),
        *(f"{count} × {reason}" for reason, count in groups.most_common(options.groups)),
    ]
    table = Table(title="Documents", columns=_COLUMNS, rows=tuple(rows), notes=tuple(notes))
    print(table.render())
    if options.write:
        write_page(table)


def write_page(table: Table) -> None:
    """Replace the table between its marks in the documentation."""
    text = PAGE.read_text()
    before, _, rest = text.partition(_MARKS[0])
    _, _, after = rest.partition(_MARKS[1])
    body = table.render().partition("\n\n")[2]
    PAGE.write_text(f"{before}{_MARKS[0]}\n\n{body}\n\n{_MARKS[1]}{after}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.openapi", description=__doc__)
    parser.add_argument("documents", nargs="*", type=Path, help="files or folders (default: ../shared/specs)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each document; the median is shown")
    parser.add_argument("--against", type=Path, help="another checkout, run in turn with this one")
    parser.add_argument("--refused", action="store_true", help="also print each refused example")
    parser.add_argument("--groups", type=int, default=12, help="number of groups of reasons")
    parser.add_argument("--write", action="store_true", help="write the table into docs/openapi.md")
    return parser.parse_args()


def _paths(given: Sequence[Path]) -> Iterator[Path]:
    for place in given or [SPECS]:
        if place.is_dir():
            yield from (path for path in sorted(place.iterdir()) if path.name != "index.json" and path.is_file())
        else:
            yield place


def _measure(path: Path, rounds: int, against: Path | None) -> Seen:
    is_archive = path.name.endswith(_ARCHIVES)
    raw = path.read_bytes()
    if path.suffix == ".gz" and not is_archive:
        raw = gzip.decompress(raw)
    seen = Seen(path.name.removesuffix(".gz") if not is_archive else path.name, raw)
    form = DocumentForm(is_archive=is_archive)
    for _ in range(rounds):
        seen.runs.append(_run(raw, form, TREE))
        if against is not None:
            seen.others.append(_run(raw, form, against))
    return seen


def _run(raw: bytes, form: DocumentForm, tree: Path) -> Run:
    task = Task(memory_bytes=_MEMORY, cpu_s=_CPU_S, options=_OPTIONS, form=form)
    command = [sys.executable, "-I", "-c", _START.format(tree=str(tree.resolve()))]
    started = time.perf_counter()
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("the child has no pipes")
    child.stdin.write(write_frame(task) + raw)
    child.stdin.close()
    printed = child.stdout.read()
    child.stdout.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    answer = WorkerAnswer()
    place = 0
    while place < len(printed):
        length = int.from_bytes(printed[place : place + LENGTH_BYTES], "big")
        place += LENGTH_BYTES
        answer.take(decode_message(printed[place : place + length]))
        place += length
    return Run(answer=answer, cpu_s=used.ru_utime + used.ru_stime, wall_s=time.perf_counter() - started)


def _row(seen: Seen) -> tuple[tuple[str, ...], Verdicts, Compilation | None]:
    answer = seen.runs[0].answer
    size = f"{len(seen.raw) / 1e6:.2f}"
    if answer.refusal is not None or answer.crash is not None:
        reason = answer.refusal.message if answer.refusal is not None else "crashed"
        return (seen.name, "–", size, "–", f"refused: {reason[:90]}", *["–"] * 6), Verdicts(), None
    compilation = answer.compilation()
    if compilation is None:
        raise RuntimeError(f"{seen.name}: the child returned no result")
    root: Any = read_tree(answer.document or seen.raw)
    judged = judge(root, _tools(compilation))
    report = compilation.report
    counts = " / ".join(str(report.count(status)) for status in Status)
    share = f"{100 * judged.accepted / judged.count:.1f}" if judged.count else "–"
    return (
        (
            seen.name,
            str(root.get("openapi", root.get("swagger"))),
            size,
            str(len(report.operations)),
            counts,
            f"{report.tools_list_bytes / 1000:,.0f}",
            f"{report.dearest[0].size / 1000:,.1f}" if report.dearest else "–",
            str(judged.count),
            share,
            _compared([run.cpu_s for run in seen.runs], [run.cpu_s for run in seen.others], 2),
            _compared(_peaks(seen.runs), _peaks(seen.others), 0),
        ),
        judged,
        compilation,
    )


def _tools(compilation: Compilation) -> dict[tuple[str, str], tuple[str, Json, dict[tuple[str, str], str]]]:
    """Name, input schema and argument names of each tool, by method and path."""
    found: dict[tuple[str, str], tuple[str, Json, dict[tuple[str, str], str]]] = {}
    for made in compilation.operations:
        schema = msgspec.json.decode(made.definition)["inputSchema"]
        names = {(item.location.value, item.name): item.argument for item in made.plan.parameters}
        found[made.method, made.path] = (made.tool, schema, names)
    return found


def _peaks(runs: Sequence[Run]) -> list[float]:
    return [run.answer.peak_bytes / 1e6 for run in runs]


def _compared(mine: Sequence[float], others: Sequence[float], digits: int) -> str:
    middle = statistics.median(mine)
    text = f"{middle:.{digits}f}"
    return f"{text} ({middle / statistics.median(others):.2f}×)" if others else text


def _groups(compilation: Compilation) -> Counter[str]:
    """Operations by reason; quoted names and numbers are left out of the reasons."""
    texts = (
        _NUMBER.sub("N", _QUOTED.sub("'…'", reason))
        for report in compilation.report.operations
        for reason in report.reasons
    )
    return Counter(texts)


def _print_refused(name: str, judged: Verdicts) -> None:
    for tool, where, fault in judged.refused:
        print(f"{name}: {tool}: {where}: {fault}")


if __name__ == "__main__":
    main()
