"""Takes every guard out in turn and looks whether its tests notice: `python -m tests.guards [--only NAME] [--write]`.

It works in copies of the tree. First everything has to be green as it is; then each guard is removed from a copy, its
tests are run there, and at least one of them has to fail. The exit code is 1 when a guard can go unnoticed.
`--write` writes docs/security/guards.md.
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

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "security" / "guards.md"
_FAILED = re.compile(r"^FAILED (tests/\S+?)(?:\[.*)?(?: - .*)?$", re.MULTILINE)
_PATIENCE_S = 300
_ALL_PATIENCE_S = 1200
"""For the first run, of the tests of all guards in one process."""
_GREEN, _RED = 0, 1


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests said without a guard: the one that failed first, or why that is no answer."""

    guard: Guard
    seen_by: str | None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the tree, to be broken."""

    root: Path

    def run(self, tests: Sequence[str], *, keeps_bytecode: bool, patience_s: int = _PATIENCE_S) -> tuple[int, str]:
        """Exit code and output of these tests here, with the libraries of this interpreter."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-n",
            "0",
            "-rf",
            "--no-header",
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
    def without(self, guard: Guard) -> Generator[None]:
        """The copy without this guard, for as long as the block runs."""
        path = self.root / guard.file
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
    """The text of a file without the guard.

    Raises:
        ValueError: what is to be replaced does not stand there exactly once.
    """
    if text.count(guard.text) != 1:
        raise ValueError(f"{guard.name}: its text stands {text.count(guard.text)} times in {guard.file}")
    return text.replace(guard.text, guard.without)


def render(outcomes: Sequence[Outcome]) -> str:
    """The page."""
    lines = [
        "# Guards",
        "",
        f"{len(outcomes)} guards, each taken out alone: the test beside it is the first that failed without it.",
        "Written by `make mutate-guards`; what is replaced by what is in `tests/guard_table.py`.",
        "",
        "| guard | what it protects | where | noticed by |",
        "| --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        guard, seen_by = outcome.guard, outcome.seen_by
        noticed = f"`{seen_by}`" if seen_by else "**nothing**"
        lines.append(f"| `{guard.name}` | {guard.protects} | `{guard.file}` | {noticed} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Run, print, and say by the exit code whether every guard is noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.guards", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="only guards whose name holds this")
    parser.add_argument("--write", action="store_true", help="write docs/security/guards.md")
    parser.add_argument("--workers", type=int, default=2, help="how many at once")
    asked = parser.parse_args()
    guards = [guard for guard in GUARDS if not asked.only or any(word in guard.name for word in asked.only)]
    if not guards:
        parser.error("no guard is called so")
    if asked.write and asked.only:
        parser.error("the page is written of all guards")
    with tempfile.TemporaryDirectory(prefix="gwg-") as folder:
        copies = [_copy_tree(Path(folder) / str(number)) for number in range(max(1, asked.workers))]
        outcomes = _try_all(guards, copies)
    unnoticed = [outcome for outcome in outcomes if outcome.seen_by is None]
    for outcome in unnoticed:
        print(f"\n{outcome.guard.name}: can be removed unnoticed\n{outcome.said}")
    print(f"{len(outcomes) - len(unnoticed)} of {len(outcomes)} guards are noticed when they are gone")
    if asked.write and not unnoticed:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(render(outcomes))
    return bool(unnoticed)


def _try_all(guards: Sequence[Guard], copies: Sequence[Copy]) -> list[Outcome]:
    free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    for copy in copies:
        copy.check_origin()
        copy.run(["--collect-only", "tests/unit/house"], keeps_bytecode=True)
        free.put(copy)
    tests = list(dict.fromkeys(test for guard in guards for test in guard.tests))
    code, said = copies[0].run(tests, keeps_bytecode=True, patience_s=_ALL_PATIENCE_S)
    if code != _GREEN:
        sys.exit(f"the tests are not green with all guards in place:\n{said[-4000:]}")

    def attempt(guard: Guard) -> Outcome:
        copy = free.get()
        try:
            outcome = _try_one(guard, copy)
        finally:
            free.put(copy)
        print(f"{'red  ' if outcome.seen_by else 'GREEN'} {guard.name:32} {outcome.seen_by or ''}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(copies)) as pool:
        return list(pool.map(attempt, guards))


def _try_one(guard: Guard, copy: Copy) -> Outcome:
    """Only a test that failed is an answer: no error while collecting or preparing, no time that ran out."""
    with copy.without(guard):
        code, said = copy.run(guard.tests, keeps_bytecode=False)
    found = _FAILED.search(said)
    if code != _RED or found is None:
        return Outcome(guard, None, f"exit code {code}:\n{said[-2000:]}")
    return Outcome(guard, found[1])


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
