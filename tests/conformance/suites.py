"""The official suites: the runs, their required results, and their outcomes."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import anyio
import yaml

from tests.conformance.node import clean_environment, find_packages
from tests.conformance.suite_gateway import SuiteGateway

PATIENCE_S = 300
PRELOAD = Path(__file__).with_name("preload.mjs")
_PACKAGE = "node_modules/@modelcontextprotocol/conformance"
_FOLDER = re.compile(r"server-(?P<scenario>.+?)-\d{4}-\d{2}-\d{2}T.*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of a suite: `floor` checks have to pass, and no scenario that counts may fail."""

    name: str
    package: str
    version: str
    arguments: tuple[str, ...]
    floor: int
    may_warn: frozenset[str] = frozenset()
    """Scenarios whose warnings concern the suite's own client."""
    requirements: str | None = None
    extension: str | None = None
    """The beginning of the names of an extension's scenarios, which count too."""

    def counts(self, scenario: str, scored: frozenset[str] | None) -> bool:
        """True if a failure of the scenario is one of the run; without `scored` every scenario counts."""
        return scored is None or scenario in scored or self.extends(scenario)

    def extends(self, scenario: str) -> bool:
        """True if the scenario is one of the run's extension."""
        return self.extension is not None and scenario.startswith(self.extension)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check that did not pass."""

    scenario: str
    check: str
    status: str
    reason: str

    def __str__(self) -> str:
        return f"{self.status} {self.scenario}/{self.check}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a run; `passed` and `skipped` count checks, `unscored` are findings that do not count.

    `extended` counts the passed checks in the scenarios of the run's extension.
    """

    run: Run
    scenarios: int
    passed: int
    skipped: int
    failures: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    unscored: tuple[Finding, ...] = field(default=())
    extended: int = 0

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """Reasons why the run is not good enough; empty when it is."""
        few = f"{self.passed} checks passed, not {self.run.floor}"
        found = (*self.failures, *(each for each in self.warnings if each.scenario not in self.run.may_warn))
        return (*([few] if self.passed < self.run.floor else []), *map(str, found))


OLD = "0.1.16"
NEW = "0.2.0-alpha.12"
RUNS = (
    Run(
        name="stable",
        package="stable",
        version=OLD,
        arguments=("--suite", "all"),
        floor=44,
        may_warn=frozenset({"server-sse-polling"}),
    ),
    Run(
        name="required of 2025-11-25",
        package="next",
        version=NEW,
        arguments=("--requirements", "2025-11-25"),
        floor=84,
        requirements="2025-11-25",
    ),
    Run(
        name="required of 2026-07-28",
        package="next",
        version=NEW,
        arguments=("--requirements", "2026-07-28"),
        floor=196,
        requirements="2026-07-28",
        extension="tasks-",
    ),
    Run(
        name="all of 2025-06-18",
        package="next",
        version=NEW,
        arguments=("--suite", "all", "--spec-version", "2025-06-18"),
        floor=56,
    ),
    Run(
        name="all of 2026-07-28",
        package="next",
        version=NEW,
        arguments=("--suite", "all", "--spec-version", "2026-07-28"),
        floor=152,
    ),
)


async def take(run: Run, suite_gateway: SuiteGateway, folder: Path) -> Outcome:
    """Run a suite against the tenant; what it writes stays in the folder, which is made."""
    packages = await anyio.to_thread.run_sync(find_packages, run.package)
    program = packages / _PACKAGE / "dist/index.js"
    command = ["node", "--import", str(PRELOAD), str(program), "server", "--url", suite_gateway.url, *run.arguments]
    environment = clean_environment() | {
        "EXAM_ORIGIN": suite_gateway.origin,
        "EXAM_AUTHORIZATION": f"Bearer {suite_gateway.tenant.key}",
        "EXAM_PACKAGES": str(packages),
    }
    folder.mkdir(parents=True)
    with anyio.fail_after(PATIENCE_S):
        ended = await anyio.run_process([*command, "-o", str(folder)], env=environment, check=False)
    (folder / "log.txt").write_bytes(ended.stdout + ended.stderr)
    scored = None if run.requirements is None else _scored(packages, run.requirements)
    return read_outcome(run, folder, scored)


def read_outcome(run: Run, folder: Path, scored: frozenset[str] | None) -> Outcome:
    """Everything that a suite wrote down; without `scored` every scenario counts."""
    statuses: Counter[str] = Counter()
    findings: list[Finding] = []
    seen: set[str] = set()
    extended = 0
    for path in sorted(folder.glob("*/checks.json")):
        named = _FOLDER.fullmatch(path.parent.name)
        scenario = path.parent.name if named is None else named["scenario"]
        seen.add(scenario)
        for check in cast(list[dict[str, Any]], json.loads(path.read_text())):
            statuses[check["status"]] += 1
            extended += check["status"] == "SUCCESS" and run.extends(scenario)
            if check["status"] in {"FAILURE", "WARNING"}:
                findings.append(_finding(scenario, check))
    findings += [_absent(scenario) for scenario in sorted((scored or frozenset()) - seen)]
    counted = [each for each in findings if run.counts(each.scenario, scored)]
    return Outcome(
        run=run,
        scenarios=len(seen),
        passed=statuses["SUCCESS"],
        skipped=statuses["SKIPPED"],
        failures=tuple(each for each in counted if each.status == "FAILURE"),
        warnings=tuple(each for each in counted if each.status == "WARNING"),
        unscored=tuple(each for each in findings if each not in counted),
        extended=extended,
    )


def _finding(scenario: str, check: Mapping[str, Any]) -> Finding:
    reason = str(check.get("errorMessage") or check.get("details") or check.get("description"))
    return Finding(scenario=scenario, check=check["id"], status=check["status"], reason=reason[:600])


def _absent(scenario: str) -> Finding:
    """A scenario that counts and that the suite wrote nothing down of."""
    return Finding(scenario=scenario, check="-", status="FAILURE", reason="it was not run")


def _scored(packages: Path, revision: str) -> frozenset[str]:
    """The scenarios that count towards a revision, in the suite's own words."""
    listed: dict[str, Any] = yaml.safe_load((packages / _PACKAGE / f"requirements/{revision}.yaml").read_text())
    return frozenset(listed["server"])
