"""Asks pip-audit for known vulnerabilities of what is installed: `python -m tests.advisories`, a part of `make check`.

A vulnerability fails. Without an answer of the advisory service, or for a package that it does not know, the check
prints NOT RUN with the reason and continues: pip-audit alone would report no vulnerability.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

_ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.txt", "deploy/requirements-build.txt")
_ALL_S = 120
_REQUEST_S = 15
_NAMED = 3


def main() -> int:
    """Print what was found and what was not asked; 1 when a vulnerability is known."""
    if (reason := probe(_ROOT / LOCKS[0])) is not None:
        print(f"NOT RUN: pip-audit: {reason}")
        return 0
    is_bad = False
    for lock in LOCKS:
        found, reason = audit(_ROOT / lock)
        if reason is not None:
            print(f"NOT RUN: pip-audit of {lock}: {reason}")
        elif not found:
            print(f"pip-audit of {lock}: no known vulnerability")
        for flaw in found:
            print(f"pip-audit of {lock}: {flaw}")
        is_bad = is_bad or bool(found)
    return int(is_bad)


def probe(lock: Path) -> str | None:
    """Reason why the service cannot be used, found with one package before all are sent."""
    pins = lock.read_text().split("\n")
    end = next(place for place, line in enumerate(pins) if place and line and not line.startswith(" "))
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.txt"
        one.write_text("\n".join(pins[:end]) + "\n")
        return audit(one)[1]


def audit(lock: Path) -> tuple[list[str], str | None]:
    """The vulnerabilities of a lock, and why it, or a part of it, was not audited."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", str(_REQUEST_S)]
    try:
        ended = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False, timeout=_ALL_S)
    except subprocess.TimeoutExpired:
        return [], f"no answer within {_ALL_S} seconds"
    try:
        report: Mapping[str, Any] = json.loads(ended.stdout)
    except ValueError:
        last = ended.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        return [], last[0]
    return read_report(report)


def read_report(report: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """The vulnerabilities of a report, and which packages the service did not judge."""
    packages = cast("Sequence[Mapping[str, Any]]", report.get("dependencies", ()))
    found = [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {_fixes(flaw)}"
        for package in packages
        for flaw in package.get("vulns", ())
    ]
    skipped = [package for package in packages if "skip_reason" in package]
    if not packages:
        return found, "the report names no package"
    if not skipped:
        return found, None
    named = ", ".join(str(package["name"]) for package in skipped[:_NAMED])
    more = ", …" if len(skipped) > _NAMED else ""
    reason = f"{len(skipped)} of {len(packages)} packages were not judged ({named}{more}): {skipped[0]['skip_reason']}"
    return found, reason


def _fixes(flaw: Mapping[str, Any]) -> str:
    return ", ".join(flaw["fix_versions"]) or "nothing yet"


if __name__ == "__main__":
    sys.exit(main())
