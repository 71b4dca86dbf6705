"""The files of a release: the result of `make dist` installs without a network, and its lists are complete."""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.dist import main, notes
from gateway.telemetry.distribution import VERSION
from tests.deploy.compose import ROOT
from tests.workflows import main as check_workflows

_UNPINNED = """
on: push
permissions: {}
jobs:
  one:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v5
        with: {persist-credentials: false}
"""


@pytest.mark.long
def test_a_release_installs_without_a_network(tmp_path: Path) -> None:
    """Ours: the bundle has all that it needs; no index is asked (SRV-1)."""
    main(tmp_path / "dist")
    bundle = tmp_path / "dist" / f"gateway-{VERSION}-offline.tar.gz"
    subprocess.run(["tar", "-xzf", bundle, "-C", tmp_path], check=True)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_CONFIG_FILE": os.devnull, "PYTHON": sys.executable}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    done = subprocess.run(
        [tmp_path / f"gateway-{VERSION}" / "install.sh", tmp_path / "installed"],
        env={**kept, **nowhere},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in (tmp_path / "dist" / "SHA256SUMS").read_text().splitlines()]
    sums = {name: digest for digest, name in lines}
    bill = json.loads((tmp_path / "dist" / f"sbom-{VERSION}.cdx.json").read_text())
    locked = set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))

    assert done.stdout.splitlines()[-1:] == [f"gateway {VERSION}"], done.stderr
    assert sums.keys() == {path.name for path in (tmp_path / "dist").iterdir()} - {"SHA256SUMS"}
    assert all(hashlib.sha256((tmp_path / "dist" / name).read_bytes()).hexdigest() == sums[name] for name in sums)
    assert locked - {component["name"] for component in bill["components"]} == set()


def test_notes_are_the_section_of_the_version() -> None:
    """Ours: a release describes itself, and a build before it describes what is not released yet."""
    changelog = (
        "# Changelog\n\n## Unreleased\n\nnew\n\n## [1.2.0] - 2026-12-01\n\n### Added\n\n- a\n\n## 1.1.0\n\nold\n"
    )

    assert notes(changelog, "1.2.0") == "### Added\n\n- a\n"
    assert notes(changelog, "1.3.0") == "new\n"


def test_assessed_packages_are_those_of_the_lock() -> None:
    """Ours: each assessed version is the installed one."""
    assessed = json.loads((ROOT / "deploy" / "vex.cdx.json").read_text())["vulnerabilities"]
    refs = {affected["ref"] for one in assessed for affected in one["affects"]}
    locked = re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements-run.txt").read_text(), re.MULTILINE)

    assert refs <= {f"pkg:pypi/{name}@{version}" for name, version in locked}
    assert all(one["analysis"]["detail"] and one["analysis"]["state"] for one in assessed)


def test_a_workflow_with_an_action_by_tag_is_refused(tmp_path: Path) -> None:
    """Ours: the check of the workflows can fail."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "one.yml").write_text(_UNPINNED)
    assert check_workflows(tmp_path) == 1
    (tmp_path / "workflows" / "one.yml").write_text(_UNPINNED.replace("runs-on", "run-on"))
    assert check_workflows(tmp_path) == 1
