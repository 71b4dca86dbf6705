"""`python -m tests.times [--write] [pytest arguments]`: what the suite costs, by folder, test, set-up and worker.

Runs pytest as `make test` does, with this module as a plugin. Wall time is that of each phase of a test; CPU is that of
the test process and of the children that it has waited for, so the CPU of a process that ends later is billed to the
test or set-up during which it ends. `--write` writes docs/development/test-times.md.
"""

import os
import resource
import sys
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_ROOT = Path(__file__).parent.parent
_PAGE = _ROOT / "docs" / "development" / "test-times.md"
_DEAREST = 30
_LEAST_S = 0.5
_PASSED_ON = "cpu_s"


@dataclass(slots=True)
class Spent:
    """Seconds of a folder, a test or a set-up."""

    tests: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Times:
    """What was seen of a run."""

    began: float = field(default_factory=monotonic)
    folders: dict[str, Spent] = field(default_factory=dict[str, Spent])
    calls: dict[str, Spent] = field(default_factory=dict[str, Spent])
    setups: dict[str, Spent] = field(default_factory=dict[str, Spent])
    workers: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        cpu_s = float(getattr(report, _PASSED_ON, 0.0))
        node: Any = getattr(report, "node", None)
        worker = "main" if node is None else str(node.gateway.id)
        self.workers[worker] = self.workers.get(worker, 0.0) + cpu_s
        parts = report.nodeid.split("::")[0].split("/")
        spent = self.folders.setdefault("/".join(parts[1:3] if len(parts) > 3 else parts[1:2]), Spent())
        spent.tests += report.when == "call"
        by_test = self.calls if report.when == "call" else self.setups
        for one in (spent, by_test.setdefault(report.nodeid, Spent())):
            one.wall_s += report.duration
            one.cpu_s += cpu_s

    def tables(self) -> str:
        """The three tables as Markdown."""
        wall = monotonic() - self.began
        cpu = sum(self.workers.values())
        count = sum(spent.tests for spent in self.folders.values())
        busy = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in sorted(self.workers.items()))
        folders = sorted(self.folders.items(), key=lambda found: -found[1].wall_s)
        return "\n\n".join(
            (
                f"{count:,} tests in {wall:.0f} s; CPU {cpu:.0f} s ({busy}).",
                _table("folder", folders, with_tests=True),
                _table("dearest test", _dearest(self.calls)),
                _table("dearest set-up and tear-down", _dearest(self.setups)),
            )
        )


def _dearest(found: dict[str, Spent]) -> list[tuple[str, Spent]]:
    dear = [one for one in found.items() if one[1].wall_s >= _LEAST_S]
    return sorted(dear, key=lambda one: -one[1].wall_s)[:_DEAREST]


def _table(what: str, rows: Iterable[tuple[str, Spent]], *, with_tests: bool = False) -> str:
    head = f"| {what} | {'tests | ' if with_tests else ''}wall s | CPU s |"
    lines = [head, "| --- |" + " ---: |" * (3 if with_tests else 2)]
    for name, spent in rows:
        tests = f"{spent.tests:,} | " if with_tests else ""
        lines.append(f"| `{name.removeprefix('tests/')}` | {tests}{spent.wall_s:.1f} | {spent.cpu_s:.1f} |")
    return "\n".join(lines)


def _cpu_s() -> float:
    """CPU seconds of this process and of the children that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class Recorder:
    """The plugin: in a worker it measures, in the process that controls the workers it counts."""

    def __init__(self) -> None:
        self.times = Times()
        self._last = _cpu_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add the CPU since the phase before to the report, which workers send whole."""
        report = yield
        now = _cpu_s()
        setattr(report, _PASSED_ON, now - self._last)
        self._last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A phase of a test is over."""
        if not hasattr(report, "worker_id") or hasattr(report, "node"):  # else it is counted where it is sent
            self.times.note(report)


def pytest_configure(config: pytest.Config) -> None:
    """Take part in a run: `-p tests.times`."""
    config.pluginmanager.register(Recorder(), "times")


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the tables, and write the page where that was asked for."""
    recorder = config.pluginmanager.get_plugin("times")
    if not isinstance(recorder, Recorder):
        return
    tables = recorder.times.tables()
    terminalreporter.write_line(tables)
    if os.environ.get("TESTS_TIMES_PAGE"):
        _PAGE.parent.mkdir(exist_ok=True)
        _PAGE.write_text(
            f"# What the tests cost\n\nWritten by `python -m tests.times --write`, on two cores.\n\n{tables}\n"
        )


def main(arguments: Sequence[str]) -> int:
    """The exit code of pytest."""
    given = [one for one in arguments if one != "--write"]
    if len(given) < len(arguments):
        os.environ["TESTS_TIMES_PAGE"] = "1"
    return int(pytest.main(["-q", "-n", "2", "--dist", "worksteal", "-p", "tests.times", *given]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
