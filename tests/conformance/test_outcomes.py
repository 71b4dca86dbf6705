"""How what a suite wrote down is judged."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.suites import Run, read_outcome

RUN = Run(name="r", package="next", version="0", arguments=(), floor=2, may_warn=frozenset({"quirk"}))


def _write(folder: Path, scenario: str, *statuses: str) -> None:
    place = folder / f"server-{scenario}-2026-11-21T04-43-06-849Z"
    place.mkdir()
    checks: list[dict[str, Any]] = [
        {"id": f"check-{number}", "status": status, "errorMessage": "why"} for number, status in enumerate(statuses)
    ]
    (place / "checks.json").write_text(json.dumps(checks))


@pytest.mark.parametrize(
    ("statuses", "said"),
    [
        (("SUCCESS", "SUCCESS", "INFO", "SKIPPED"), []),
        (("SUCCESS", "SKIPPED"), ["1 checks passed, not 2"]),
        (("SUCCESS", "SUCCESS", "FAILURE"), ["FAILURE ping/check-2: why"]),
        (("SUCCESS", "SUCCESS", "WARNING"), ["WARNING ping/check-2: why"]),
    ],
)
def test_too_few_checks_failures_and_warnings_count(tmp_path: Path, statuses: tuple[str, ...], said: list[str]) -> None:
    """Ours: a run that warns is no better than one that fails (SRV-5)."""
    _write(tmp_path, "ping", *statuses)

    assert list(read_outcome(RUN, tmp_path, None).shortcomings) == said


def test_only_what_is_scored_counts(tmp_path: Path) -> None:
    """Ours: what fails outside the required scenarios is shown, not judged (SRV-5)."""
    _write(tmp_path, "ping", "SUCCESS", "SUCCESS")
    _write(tmp_path, "quirk", "WARNING")
    _write(tmp_path, "tasks-lifecycle", "FAILURE")

    outcome = read_outcome(RUN, tmp_path, frozenset({"ping", "quirk"}))

    assert outcome.shortcomings == ()
    assert [finding.scenario for finding in outcome.unscored] == ["tasks-lifecycle"]


def test_nothing_written_is_not_good_enough(tmp_path: Path) -> None:
    """Ours: a suite that did not run proves nothing (SRV-5)."""
    assert read_outcome(RUN, tmp_path, None).shortcomings == ("0 checks passed, not 2",)
