"""The step of `make check` for known vulnerabilities, and its `NOT RUN`."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.advisories import audit, main, read_report

_GOOD: dict[str, Any] = {"name": "anyio", "version": "4.16.0", "vulns": []}
_BAD: dict[str, Any] = {"name": "x", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}
_SKIPPED: dict[str, Any] = {"name": "y", "skip_reason": "Dependency not found on PyPI and could not be audited: y (1)"}


def test_a_known_vulnerability_is_named_with_its_fix() -> None:
    """Ours: the line names the remedy."""
    assert read_report({"dependencies": [_GOOD, _BAD]}) == (["x 1: PYSEC-1, fixed in 2"], None)


def test_an_unchecked_package_is_not_called_safe() -> None:
    """Ours: pip-audit ends with 0 and `No known vulnerabilities found` where the service knows no package at all."""
    found, reason = read_report({"dependencies": [_GOOD, _SKIPPED]})

    assert found == []
    assert reason is not None
    assert reason.startswith("1 of 2 packages were not judged (y): Dependency not found")
    assert read_report({"dependencies": []})[1] == "the report names no package"


def test_a_tool_that_does_not_run_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the check continues, and names the unchecked packages."""
    monkeypatch.setattr(sys, "executable", str(_program(tmp_path, "echo 'no such module' >&2; exit 1")))

    assert audit(tmp_path / "lock.txt") == ([], "no such module")


def test_the_check_continues_without_a_service_and_fails_with_a_vulnerability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: NOT RUN is no failure, a known vulnerability is."""
    monkeypatch.setattr(sys, "executable", str(_program(tmp_path, "echo offline >&2; exit 1")))
    assert main() == 0
    assert capsys.readouterr().out == "NOT RUN: pip-audit: offline\n"

    report = '{"dependencies": [{"name": "x", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": []}]}]}'
    monkeypatch.setattr(sys, "executable", str(_program(tmp_path, f"echo '{report}'; exit 1")))
    assert main() == 1
    assert "x 1: PYSEC-1, fixed in nothing yet" in capsys.readouterr().out


def _program(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path
