"""The Python API is typed so that a checker finds wrong handlers and wrong definitions before they run."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from gateway.app.python.primitives import ExtraTool, to_registration
from gateway.errors import ToolValidationError

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "typing"
_EXPECTED = re.compile(r"# expect$")


def _by_pyright(folder: Path) -> dict[str, set[int]]:
    """The lines with errors in every file, in its strict mode."""
    settings = {
        "include": ["."],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    for path in CASES.glob("*.py"):
        shutil.copy(path, folder)
    printed = _run("pyright", "--outputjson", "--project", str(folder), "--pythonpath", sys.executable)
    return _gathered(
        (Path(diagnostic["file"]).name, diagnostic["range"]["start"]["line"] + 1)
        for diagnostic in json.loads(printed)["generalDiagnostics"]
        if diagnostic["severity"] == "error"
    )


def _by_mypy(_: Path) -> dict[str, set[int]]:
    """The lines with errors in every file, in its strict mode: the project's, which shares its cache."""
    printed = _run("mypy", "--output", "json", *(str(path.relative_to(ROOT)) for path in CASES.glob("*.py")))
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return _gathered((Path(each["file"]).name, each["line"]) for each in found if each["severity"] == "error")


def _run(checker: str, *arguments: str) -> str:
    command = [sys.executable, "-m", checker, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=300, cwd=ROOT, text=True).stdout


def _gathered(errors: Iterable[tuple[str, int]]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {path.name: set() for path in CASES.glob("*.py")}
    for name, line in errors:
        found[name].add(line)
    return found


def _expected(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), start=1) if _EXPECTED.search(line)}


@pytest.mark.long
@pytest.mark.parametrize("reported", [_by_pyright, _by_mypy])
def test_a_type_checker_finds_exactly_the_marked_lines(
    reported: Callable[[Path], dict[str, set[int]]], tmp_path: Path
) -> None:
    """Ours: wrong signatures, return types and schemas fail in both checkers' strict modes, right ones pass (PRG-5)."""
    found = reported(tmp_path)

    assert found == {path.name: _expected(path) for path in CASES.glob("*.py")}
    assert sum(map(len, found.values())) > 30


def test_faults_that_types_miss_are_refused_at_registration() -> None:
    """Ours: a schema that no checker has read is checked in full, at every depth (PRG-5, TDF-1)."""
    wrong: Any = {"type": "object", "properties": {"a": {"items": {"anyOf": [{"type": 3}]}}}}

    with pytest.raises(ToolValidationError) as refused:
        to_registration(
            ExtraTool(definition={"name": "x", "description": "x", "inputSchema": wrong}, handler=lambda _: "x")
        )

    assert [fault.pointer for fault in refused.value.faults] == ["/inputSchema/properties/a/items/anyOf/0/type"]
