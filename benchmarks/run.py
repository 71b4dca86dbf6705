"""`make bench`: cost of calls, lists, imports, sessions, large answers, manifests and workers, as tables.

Nothing here passes or fails: figures are printed, and with --write stored in docs/benchmarks.md.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from benchmarks.calls import measure_calls
from benchmarks.credentials import measure_credentials
from benchmarks.figures import Table
from benchmarks.imports import DOCUMENTS, measure_imports
from benchmarks.large_answers import measure_large_answers
from benchmarks.listeners import measure_listeners
from benchmarks.lists import measure_lists
from benchmarks.machine import describe_machine
from benchmarks.manifests import measure_manifests
from benchmarks.measure import Effort, LoadGenerator, load_generator
from benchmarks.pages import measure_pages
from benchmarks.peers import FastMcp, install_fastmcp
from benchmarks.processes import Failed
from benchmarks.sessions import measure_sessions
from benchmarks.starts import measure_starts
from benchmarks.workers import measure_workers

PARTS = (
    "calls",
    "credentials",
    "lists",
    "imports",
    "pages",
    "start",
    "sessions",
    "listeners",
    "answers",
    "manifests",
    "workers",
)
DOCUMENT = Path(__file__).parents[1] / "docs" / "benchmarks.md"
_FULL = Effort(calls=4000, seconds=6, peer_seconds=2, rounds=3)
_QUICK = Effort(calls=600, seconds=0.6, peer_seconds=0.4, rounds=1)
_PEER_S = 60.0


def main() -> None:
    """Measure, print, and write the document if requested."""
    options = _options()
    loaded, started = os.getloadavg()[0], time.monotonic()
    fastmcp = install_fastmcp(options.venv_dir) if set(options.only) & {"calls", "lists", "imports", "pages"} else None
    tables: list[Table] = []
    with load_generator() as generator:
        for name, measure in _parts(options, generator, fastmcp).items():
            if name in options.only:
                print(f"measuring {name} …", file=sys.stderr)
                tables.append(_tried(name, measure))
                print(tables[-1].render(), end="\n\n", flush=True)
    facts = describe_machine(loaded, fastmcp.version if fastmcp else None)
    facts.append(f"The run took {time.monotonic() - started:.0f} s.")
    print("\n".join(f"- {fact}" for fact in facts))
    if options.write:
        arguments = " ".join(_shown(sys.argv[1:]))
        if set(options.only) == set(PARTS):
            DOCUMENT.write_text(render(tables, facts, arguments))
        else:
            DOCUMENT.write_text(merge(DOCUMENT.read_text(), tables, arguments, loaded))


def render(tables: list[Table], facts: list[str], arguments: str) -> str:
    """Render the complete document."""
    command = f"python -m benchmarks.run {arguments}".strip()
    head = (
        f"# Benchmarks\n\nWritten by `{command}` on {time.strftime('%Y-%m-%d', time.gmtime())}; do not edit. "
        "`make bench` prints the same. Compare CPU and ratios; times depend on what else the machine did."
    )
    machine = "## Machine\n\n" + "\n".join(f"- {fact}" for fact in facts)
    return "\n\n".join([head, machine, *(table.render() for table in tables)]) + "\n"


def merge(document: str, tables: Iterable[Table], arguments: str, loaded: float) -> str:
    """Replace the sections of these tables in a document; a new section is the last one."""
    command, day = f"python -m benchmarks.run {arguments}".strip(), time.strftime("%Y-%m-%d", time.gmtime())
    sections = document.rstrip("\n").split("\n\n## ")
    for table in tables:
        about = f"Measured apart from the other tables by `{command}` on {day}; load average before: {loaded:.1f}."
        text = replace(table, notes=(*table.notes, about)).render().removeprefix("## ")
        others = [each for each in sections if not each.startswith(f"{table.title}\n")]
        place = next((at for at, each in enumerate(sections) if each not in others), len(others))
        sections = [*others[:place], text, *others[place:]]
    return "\n\n## ".join(sections) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--only", type=_names, default=PARTS, help=f"parts, comma-separated: {','.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="one short round with fewer tenants and documents")
    parser.add_argument("--calls", type=int, help=f"calls per measurement (default {_FULL.calls})")
    parser.add_argument("--rounds", type=int, help=f"rounds over all targets (default {_FULL.rounds})")
    parser.add_argument("--seconds", type=float, help="longest time of one measurement: slow targets make fewer calls")
    parser.add_argument("--venv-dir", type=Path, default=Path(".benchmarks/fastmcp"), help="FastMCP's environment")
    parser.add_argument(
        "--write", action="store_true", help="also write docs/benchmarks.md, or its sections of these parts"
    )
    return parser.parse_args()


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if unknown := set(names) - set(PARTS):
        raise argparse.ArgumentTypeError(f"unknown part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return names


def _parts(
    options: argparse.Namespace, generator: LoadGenerator, fastmcp: FastMcp | None
) -> dict[str, Callable[[], Table]]:
    usual = _QUICK if options.quick else _FULL
    tenants, configured, objects = (10, 2, 100) if options.quick else (100, 20, 400)
    documents = list(DOCUMENTS)[: 2 if options.quick else None]
    effort = Effort(
        calls=options.calls or usual.calls,
        seconds=options.seconds or usual.seconds,
        peer_seconds=usual.peer_seconds,
        rounds=options.rounds or usual.rounds,
    )
    return {
        "calls": lambda: measure_calls(generator, effort, fastmcp, tenants=tenants),
        "credentials": lambda: measure_credentials(generator, effort),
        "lists": lambda: measure_lists(generator, effort, fastmcp),
        "imports": lambda: measure_imports(documents, min(effort.rounds, 2), fastmcp, peer_seconds=_PEER_S),
        "pages": lambda: measure_pages(generator, effort, documents, fastmcp),
        "start": lambda: measure_starts(effort.rounds),
        "sessions": lambda: measure_sessions(effort.rounds),
        "listeners": lambda: measure_listeners(min(effort.rounds, 2)),
        "answers": measure_large_answers,
        "manifests": lambda: measure_manifests(configured, objects, min(effort.rounds, 2)),
        "workers": lambda: measure_workers(generator, effort),
    }


def _tried(name: str, measure: Callable[[], Table]) -> Table:
    try:
        return measure()
    except Failed as failed:
        sys.exit(f"{name}: {failed}")


def _shown(arguments: list[str]) -> list[str]:
    """Remove the argument that is a path of this machine."""
    shown: list[str] = []
    skip = False
    for argument in arguments:
        if not skip and not argument.startswith("--venv-dir"):
            shown.append(argument)
        skip = argument == "--venv-dir"
    return shown


if __name__ == "__main__":
    main()
