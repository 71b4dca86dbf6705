"""Judgement of the results that a suite wrote."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.report import PAGE
from tests.conformance.suites import RUNS, Run, read_outcome

RUN = Run(name="r", package="next", version="0", arguments=(), floor=2, may_warn=frozenset({"quirk"}))


def _write(folder: Path, scenario: str, *statuses: str) -> None:
    place = folder / f"server-{scenario}-2026-11-21T04-43-06-849Z"
    place.mkdir()
    checks: list[dict[str, Any]] = [
        {"id": f"check-{number}", "status": status, "errorMessage": "why"} for number, status in enumerate(statuses)
    ]
    (place / "checks.json").write_text(json.dumps(checks))


@pytest.mark.parametrize(
    ("statuses", "reported"),
    [
        (("SUCCESS", "SUCCESS", "INFO", "SKIPPED"), []),
        (("SUCCESS", "SKIPPED"), ["1 checks passed, not 2"]),
        (("SUCCESS", "SUCCESS", "FAILURE"), ["FAILURE ping/check-2: why"]),
        (("SUCCESS", "SUCCESS", "WARNING"), ["WARNING ping/check-2: why"]),
    ],
)
def test_too_few_checks_failures_and_warnings_count(
    tmp_path: Path, statuses: tuple[str, ...], reported: list[str]
) -> None:
    """Ours: a run that warns is no better than one that fails (SRV-5)."""
    _write(tmp_path, "ping", *statuses)

    assert list(read_outcome(RUN, tmp_path, None).shortcomings) == reported


def test_only_scored_scenarios_count(tmp_path: Path) -> None:
    """Ours: a failure outside the required scenarios is shown, not judged (SRV-5)."""
    _write(tmp_path, "ping", "SUCCESS", "SUCCESS")
    _write(tmp_path, "quirk", "WARNING")
    _write(tmp_path, "tasks-lifecycle", "FAILURE")

    outcome = read_outcome(RUN, tmp_path, frozenset({"ping", "quirk"}))

    assert outcome.shortcomings == ()
    assert [finding.scenario for finding in outcome.unscored] == ["tasks-lifecycle"]


def test_passed_checks_of_an_extension_are_counted_apart(tmp_path: Path) -> None:
    """Ours: the page names the checks of the extension, which is counted in its scenarios (SRV-5)."""
    run = Run(name="r", package="next", version="0", arguments=(), floor=2, extension="tasks-")
    _write(tmp_path, "ping", "SUCCESS")
    _write(tmp_path, "tasks-lifecycle", "SUCCESS", "SUCCESS", "SKIPPED")
    _write(tmp_path, "tasks-cancel", "SUCCESS")

    assert read_outcome(run, tmp_path, frozenset({"ping"})).extended == 3


def test_the_page_has_the_checks_of_the_extension() -> None:
    """Ours: the checks of tasks are those of the required run that the run of the whole revision lacks (SRV-5)."""
    floors = {run.name: run.floor for run in RUNS}
    [stated] = re.findall(r"all (\d+) checks pass", PAGE.read_text())

    assert int(stated) == floors["required of 2026-07-28"] - floors["all of 2026-07-28"]


def test_a_scenario_that_counts_and_was_not_run_is_missed(tmp_path: Path) -> None:
    """Ours: enough checks of other scenarios do not replace a missing one (SRV-5)."""
    _write(tmp_path, "ping", "SUCCESS", "SUCCESS", "SUCCESS")

    outcome = read_outcome(RUN, tmp_path, frozenset({"ping", "initialize"}))

    assert list(outcome.shortcomings) == ["FAILURE initialize/-: it was not run"]


def test_the_page_shows_these_runs_with_their_floors_and_versions() -> None:
    """Ours: docs/conformance.md is of the suites, runs and floors that are held, of the SDK that is locked (SRV-5)."""
    page = PAGE.read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| 0.")
    ]
    locked = re.search(r"^mcp==(\S+)", (PAGE.parents[1] / "requirements.txt").read_text(), re.MULTILINE)

    assert [(row[0], row[1], row[4]) for row in rows] == [
        (run.version, f"{run.name} (`{' '.join(run.arguments)}`)", str(run.floor)) for run in RUNS
    ]
    assert all(int(passed) >= int(floor) for _, _, _, passed, floor, *_ in rows)
    assert {(failed, warned) for _, _, _, _, _, failed, warned, *_ in rows} == {("0", "0")}
    assert locked is not None
    assert f"{locked[1]}." in " ".join(page.split()).partition("`mcp` ")[2][:20]


def test_each_run_takes_the_version_that_is_locked() -> None:
    """Ours: the table's versions are those that npm fetches (SRV-5)."""
    for run in RUNS:
        folder = Path(__file__).with_name("packages") / run.package
        asked = json.loads((folder / "package.json").read_text())["dependencies"]
        assert asked == {"@modelcontextprotocol/conformance": run.version}


def test_nothing_written_is_not_good_enough(tmp_path: Path) -> None:
    """Ours: a suite that did not run proves nothing (SRV-5)."""
    assert read_outcome(RUN, tmp_path, None).shortcomings == ("0 checks passed, not 2",)
