"""`gateway serve` and `gateway migrate` as an operator runs them."""

import itertools
import json
from pathlib import Path
from typing import Any

from tests.behaviour.cli.conftest import environment, serving
from tests.support.commands import run_gateway
from tests.support.servers import TestServers


def test_serve_prints_a_new_operator_key_exactly_once(tmp_path: Path) -> None:
    """Ours: the key is generated on the first start, kept, and not printed again (TEN-2)."""
    printed: list[Any] = []
    for _ in range(2):
        with serving("serve", "--port", "0", "--json", folder=tmp_path) as lines:
            printed.append(json.loads("".join(itertools.takewhile(lambda line: line != "}\n", lines)) + "}"))

    kept = tmp_path / ".gateway" / "operator-key"
    assert printed[0]["operator_key"] == kept.read_text().strip()
    assert "operator_key" not in printed[1]
    assert kept.stat().st_mode & 0o077 == 0
    assert all(start["embedded"] for start in printed)


async def test_migrate_prepares_an_empty_database_once(tmp_path: Path, servers: TestServers) -> None:
    """Ours: a deployment runs it before its replicas, as often as it likes, without a key (CLI-1, SRV-6)."""
    with servers.empty_database() as database:
        runs = [
            await run_gateway(
                ["migrate", "--json"],
                folder=tmp_path,
                variables=environment(**{name: database.owner_url, "GATEWAY_HOST": "0.0.0.0"}),
            )
            for name in ("GATEWAY_MIGRATION_DATABASE_URL", "GATEWAY_DATABASE_URL")
        ]

    assert [run.code for run in runs] == [0, 0], runs[0].err
    assert [bool(json.loads(run.out)["applied"]) for run in runs] == [True, False]
    assert list(tmp_path.iterdir()) == []


async def test_migrate_reports_a_missing_database_in_one_line(tmp_path: Path) -> None:
    """Ours: an operator reads what failed, not where in our code (CLI-1)."""
    variables = environment(GATEWAY_MIGRATION_DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing")

    done = await run_gateway(["migrate"], folder=tmp_path, variables=variables)

    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("gateway: ")
