"""A failing test fails the run; the second run shows if it fails alone as well."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import whole

STEADY = "def test_steady():\n    pass\n"
ONCE = """
import pathlib
def test_once():
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.write_text("")
        raise AssertionError
"""
ALWAYS = """
import pytest
@pytest.mark.parametrize("case", ["a::b", "c d", "[é]"])
def test_always(case):
    assert case == "c d"
"""
MANY = """
import pytest
@pytest.mark.parametrize("case", range(4))
def test_once(case):
    import pathlib
    seen = pathlib.Path(f"seen-{case}")
    if not seen.exists():
        seen.write_text("")
        raise AssertionError
"""
BROKEN = "import nothing_of_that_name\n"


def _run(folder: Path, module: str) -> subprocess.CompletedProcess[str]:
    (folder / "tests").mkdir()
    shutil.copy(whole.__file__, folder / "tests" / "whole.py")
    (folder / "test_one.py").write_text(STEADY + module)
    command = [sys.executable, "-m", "tests.whole", "-q"]
    plain = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, text=True, timeout=600, check=False)


def test_a_test_that_passes_alone_is_named_and_the_run_is_red(tmp_path: Path) -> None:
    ran = _run(tmp_path, ONCE)
    assert ran.returncode == 1
    assert "UNSTEADY" in ran.stdout
    assert ran.stdout.rstrip().endswith("test_one.py::test_once")


@pytest.mark.parametrize("module", [ALWAYS, MANY, BROKEN], ids=["fails again", "too many", "not collected"])
def test_repeated_and_frequent_failures_fail_the_run(tmp_path: Path, module: str) -> None:
    ran = _run(tmp_path, module)
    assert ran.returncode != 0
    assert "UNSTEADY" not in ran.stdout


def test_a_run_without_failures_is_not_looked_at_again(tmp_path: Path) -> None:
    ran = _run(tmp_path, "")
    assert ran.returncode == 0
    assert "second look" not in ran.stdout
