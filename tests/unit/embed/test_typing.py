"""The Python API is typed so that a checker finds wrong handlers and wrong definitions before anybody runs them."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CASES = ROOT / "tests" / "typing"
_EXPECTED = re.compile(r"# expect$")


def _reported(folder: Path) -> dict[str, set[int]]:
    """The lines with errors in every file, as pyright has them in strict mode."""
    settings = {
        "include": ["."],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    for path in CASES.glob("*.py"):
        shutil.copy(path, folder)
    ran = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--project", str(folder), "--pythonpath", sys.executable],
        capture_output=True,
        check=False,
        timeout=300,
    )
    found: dict[str, set[int]] = {path.name: set() for path in CASES.glob("*.py")}
    for diagnostic in json.loads(ran.stdout)["generalDiagnostics"]:
        if diagnostic["severity"] == "error":
            found[Path(diagnostic["file"]).name].add(diagnostic["range"]["start"]["line"] + 1)
    return found


def _expected(path: Path) -> set[int]:
    return {number for number, line in enumerate(path.read_text().splitlines(), start=1) if _EXPECTED.search(line)}


def test_a_type_checker_finds_exactly_the_marked_lines(tmp_path: Path) -> None:
    """Ours: a wrong signature, return type or schema fails in pyright strict, and right ones pass (PRG-5)."""
    reported = _reported(tmp_path)

    assert reported == {path.name: _expected(path) for path in CASES.glob("*.py")}
    assert sum(map(len, reported.values())) > 15
