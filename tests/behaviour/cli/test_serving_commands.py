"""`gateway serve` and `gateway migrate` as an operator runs them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.behaviour.cli.conftest import environment, serving
from tests.support.servers import TestServers


def test_serve_prints_a_new_operator_key_exactly_once(tmp_path: Path) -> None:
    """Ours: the key is generated on the first start, kept, and not printed again (TEN-2)."""
    printed: list[Any] = []
    for _ in range(2):
        with serving("-m", "gateway", "serve", "--port", "0", "--json", folder=tmp_path) as child:
            assert child.stdout is not None
            lines: list[str] = []
            for line in child.stdout:
                lines.append(line)
                if line == "}\n":
                    break
            printed.append(json.loads("".join(lines)))

    kept = tmp_path / ".gateway" / "operator-key"
    assert printed[0]["operator_key"] == kept.read_text().strip()
    assert "operator_key" not in printed[1]
    assert kept.stat().st_mode & 0o077 == 0
    assert all(start["embedded"] for start in printed)


def test_migrate_prepares_an_empty_database_once(tmp_path: Path, servers: TestServers) -> None:
    """Ours: a deployment runs it before its replicas, as often as it likes (CLI-1)."""
    with servers.empty_database() as database:
        variables = environment(GATEWAY_MIGRATION_DATABASE_URL=database.owner_url)
        command = [sys.executable, "-m", "gateway", "migrate", "--json"]
        runs = [
            subprocess.run(
                command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False
            )
            for _ in range(2)
        ]

    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert json.loads(runs[0].stdout)["applied"]
    assert json.loads(runs[1].stdout)["applied"] == []


def test_migrate_says_in_one_line_that_the_database_is_away(tmp_path: Path) -> None:
    """Ours: an operator reads what failed, not where in our code (CLI-1)."""
    variables = environment(GATEWAY_MIGRATION_DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")
    command = [sys.executable, "-m", "gateway", "migrate"]

    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("gateway: ")
