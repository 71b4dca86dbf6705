"""`python -m tests.times [--write] [pytest arguments]`: what the suite costs, by folder, test, set-up and worker.

Runs pytest as `make test` does, with this module as a plugin. Wall time is that of each phase of a test; CPU is that of
the test process and of the children that it has waited for, so a process is billed to the test or set-up during which
it ends. The total counts every process of the run. `--write` keeps the tables in
`build/test-times.md`.
"""

import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_ROOT = Path(__file__).parent.parent
_PAGE = _ROOT / "build" / "test-times.md"
_DEAREST = 30
_LEAST_S = 0.5
_AS_IN_MAKE_TEST = ("-q", "-n", "5", "--dist", "worksteal", "-m", "not long")
_ORPHANS_S = 60
_PASSED_ON = "cpu_s"
_RESULT = "TESTS_TIMES_RESULT"
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of `prctl`: processes whose parent has ended are inherited by this one."""


@dataclass(slots=True)
class Spent:
    """Seconds of a folder, a test or a set-up."""

    tests: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Times:
    """Seconds of a run, by folder, file, test and worker."""

    began: float = field(default_factory=monotonic)
    folders: dict[str, Spent] = field(default_factory=dict[str, Spent])
    files: dict[str, Spent] = field(default_factory=dict[str, Spent])
    calls: dict[str, Spent] = field(default_factory=dict[str, Spent])
    setups: dict[str, Spent] = field(default_factory=dict[str, Spent])
    workers: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, report: pytest.TestReport) -> None:
        """Count one phase of one test."""
        cpu_s = float(getattr(report, _PASSED_ON, 0.0))
        node: Any = getattr(report, "node", None)
        worker = "main" if node is None else str(node.gateway.id)
        self.workers[worker] = self.workers.get(worker, 0.0) + cpu_s
        file = report.nodeid.split("::")[0]
        parts = file.split("/")
        spent = self.folders.setdefault("/".join(parts[1:3] if len(parts) > 3 else parts[1:2]), Spent())
        by_test = self.calls if report.when == "call" else self.setups
        for one in (spent, self.files.setdefault(file, Spent()), by_test.setdefault(report.nodeid, Spent())):
            one.tests += report.when == "call"
            one.wall_s += report.duration
            one.cpu_s += cpu_s

    def tables(self) -> str:
        """The tables as Markdown."""
        wall = monotonic() - self.began
        cpu = sum(self.workers.values())
        count = sum(spent.tests for spent in self.folders.values())
        busy = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in sorted(self.workers.items()))
        folders = sorted(self.folders.items(), key=lambda found: -found[1].wall_s)
        return "\n\n".join(
            (
                f"{count:,} tests in {wall:.0f} s; CPU {cpu:.0f} s ({busy}).",
                _table("folder", folders, with_tests=True),
                _table("dearest file", _dearest(self.files), with_tests=True),
                _table("dearest test", _dearest(self.calls)),
                _table("dearest set-up and tear-down", _dearest(self.setups)),
            )
        )


def _dearest(found: dict[str, Spent]) -> list[tuple[str, Spent]]:
    dear = [one for one in found.items() if one[1].wall_s >= _LEAST_S]
    return sorted(dear, key=lambda one: -max(one[1].wall_s, one[1].cpu_s))[:_DEAREST]


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


def pytest_unconfigure(config: pytest.Config) -> None:
    """Hand over the tables; a worker has none."""
    recorder = config.pluginmanager.get_plugin("times")
    if isinstance(recorder, Recorder) and not hasattr(config, "workerinput"):
        Path(os.environ[_RESULT]).write_text(recorder.times.tables())


def main(arguments: Sequence[str]) -> int:
    """The exit code of pytest."""
    given = [one for one in arguments if one != "--write"]
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    with tempfile.NamedTemporaryFile("r") as result:
        command = [sys.executable, "-m", "pytest", *_AS_IN_MAKE_TEST, "-p", "tests.times", *given]
        code = subprocess.run(command, cwd=_ROOT, env={**os.environ, _RESULT: result.name}, check=False).returncode
        _wait_for_orphans()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        shown = f"CPU of all processes {used.ru_utime + used.ru_stime:.0f} s. {result.read()}\n"
    shown = f"Importing the gateway takes {_import_s():.1f} s of CPU on this machine. {shown}"
    print(shown)
    if len(given) < len(arguments):
        _PAGE.parent.mkdir(exist_ok=True)
        _PAGE.write_text(f"# Cost of the tests\n\nWritten by `python -m tests.times --write` on two cores.\n\n{shown}")
    return code


def _import_s() -> float:
    """CPU seconds of importing the gateway, which is most of a start; compares the speed of machines."""
    before = _cpu_s()
    subprocess.run([sys.executable, "-c", "import gateway.app.server.serve"], cwd=_ROOT, check=True)
    return _cpu_s() - before


def _wait_for_orphans() -> None:
    """Wait for the processes that the run has left, most of which end when their pipes close; at most a minute."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(_ORPHANS_S)
    with contextlib.suppress(ChildProcessError, TimeoutError):
        while True:
            os.wait()
    signal.alarm(0)


def _give_up(*_: object) -> None:
    raise TimeoutError


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
