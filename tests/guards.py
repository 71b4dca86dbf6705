"""Removal of every guard in turn, each of which its test must notice: `python -m tests.guards [--only NAME]`.

It works in copies of the tree. First all tests must pass; then each guard is removed from a copy, and its test must
fail there: for a guard of the engines of kinds, every case of the test, of which each is a kind. The exit code is 1 if
a guard can be removed unnoticed.
"""

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.guard_table import GUARDS, Guard
from tests.mutations import place_of, places

ROOT = Path(__file__).parent.parent
_FAILED = re.compile(r"^FAILED (tests/\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)
_GREEN_CASE = re.compile(r"^(?:PASSED|ERROR) tests/\S+?\[(.*)\]", re.MULTILINE)
_PATIENCE_S = 300
_ALL_PATIENCE_S = 1200
"""For the first run, of the tests of all guards in one process."""
_GREEN, _RED = 0, 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run of a guard's test without the guard: noticed if the test failed, else the output."""

    guard: Guard
    is_noticed: bool
    output: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the tree, to be broken."""

    root: Path

    def run(
        self,
        tests: Sequence[str],
        *,
        keeps_bytecode: bool,
        is_of_each_kind: bool = False,
        patience_s: int = _PATIENCE_S,
    ) -> tuple[int, str]:
        """Exit code and output of these tests here, with the libraries of this interpreter.

        They end at the first failure, unless each kind has a case that must fail.
        """
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *(["-rA"] if is_of_each_kind else ["-x", "-rf"]),
            "-n",
            "0",
            "--no-header",
            "--tb=native",  # other forms parse sources, which ends pytest on Python 3.11.2 (python/cpython#106905)
            "-p",
            "no:cacheprovider",
        ]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "PYTEST_"))}
        variables = {"PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "" if keeps_bytecode else "never"}
        try:
            done = subprocess.run(
                [*command, "-p", "no:cacheprovider", *tests],
                cwd=self.root,
                env=kept | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=patience_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"no end within {patience_s} seconds"
        return done.returncode, done.stdout

    def check_origin(self) -> None:
        """Stop everything unless the code that is imported here is the copy's: nothing else would be tested."""
        environment = {**os.environ, "PYTHONPATH": str(self.root)}
        code = "import gateway, tests.guards; print(gateway.__file__); print(tests.guards.__file__)"
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=self.root, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        if not all(Path(line).is_relative_to(self.root) for line in done.stdout.split("\n") if line):
            sys.exit(f"another tree is imported in the copy: {done.stdout}")

    @contextmanager
    def without(self, guard: Guard, file: str) -> Generator[None]:
        """The copy without this guard, for as long as the block runs."""
        path = self.root / file
        before, stamp = path.read_text(), path.stat()
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()
        path.write_text(remove(guard, before))
        try:
            yield
        finally:
            path.write_text(before)
            os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def remove(guard: Guard, text: str) -> str:
    """The text of a module without the guard.

    Raises:
        ValueError: the guard is not marked exactly once, or the mutation does not apply to what is marked.
    """
    try:
        return guard.mutation(place_of(guard.name, text))
    except ValueError as error:
        raise ValueError(f"{guard.name}: {error}") from error


def main() -> int:
    """Run and print; the exit code is 0 if the removal of every guard is noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="only guards whose name holds this")
    parser.add_argument("--workers", type=int, default=2, help="number of concurrent removals")
    asked = parser.parse_args()
    guards = [guard for guard in GUARDS if not asked.only or any(word in guard.name for word in asked.only)]
    if not guards:
        parser.error("no guard is called so")
    with tempfile.TemporaryDirectory(prefix="gwg-") as folder:
        copies = [_copy_tree(Path(folder) / str(number)) for number in range(max(1, asked.workers))]
        outcomes = _try_all(guards, copies)
    unnoticed = [outcome for outcome in outcomes if not outcome.is_noticed]
    for outcome in unnoticed:
        print(f"\n{outcome.guard.name}: can be removed unnoticed\n{outcome.output}")
    print(f"{len(outcomes) - len(unnoticed)} of {len(outcomes)} guards are noticed when they are gone")
    return bool(unnoticed)


def _try_all(guards: Sequence[Guard], copies: Sequence[Copy]) -> list[Outcome]:
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        copy.check_origin()
        copy.run(["--collect-only", "tests/unit/repository"], keeps_bytecode=True)
        free.put(copy)
    tests = list(dict.fromkeys(guard.test for guard in guards))
    files = {name: files[0] for name, files in places(ROOT).items()}
    code, reported = copies[0].run(tests, keeps_bytecode=True, patience_s=_ALL_PATIENCE_S)
    if code != _GREEN:
        sys.exit(f"the tests are not green with all guards in place:\n{reported[-4000:]}")

    def attempt(guard: Guard) -> Outcome:
        copy = free.get()
        try:
            with copy.without(guard, files[guard.name]):
                run = copy.run([guard.test], keeps_bytecode=False, is_of_each_kind=guard.is_of_each_kind)
                outcome = judge(guard, *run)
        finally:
            free.put(copy)
        print(f"{'red  ' if outcome.is_noticed else 'GREEN'} {guard.name:32} {guard.test}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(attempt, guards))


def judge(guard: Guard, code: int, output: str) -> Outcome:
    """The outcome of a run. Only a failed test notices: no error while collecting or preparing, no timeout."""
    found = _FAILED.search(output)
    if code != _RED or found is None:
        return Outcome(guard, is_noticed=False, output=f"exit code {code}:\n{output[-2000:]}")
    if guard.is_of_each_kind and (green := _GREEN_CASE.findall(output)):
        return Outcome(guard, is_noticed=False, output=f"not noticed for {', '.join(green)}")
    return Outcome(guard, is_noticed=True)


def _copy_tree(root: Path) -> Copy:
    """Everything that is or may be committed, and beside it what tests read from beside the tree."""
    tree = root / "tree"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    if (ROOT.parent / "shared").is_dir():
        (root / "shared").symlink_to(ROOT.parent / "shared")
    return Copy(tree)


if __name__ == "__main__":
    sys.exit(main())
