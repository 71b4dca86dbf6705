"""`gateway migrate` where only the database is known, as in a job that runs before any replica."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.servers import TestServers


def _migrate(folder: Path, **variables: str) -> "subprocess.CompletedProcess[bytes]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    command = [sys.executable, "-m", "gateway", "migrate", "--json"]
    return subprocess.run(command, env={**kept, **variables}, cwd=folder, capture_output=True, timeout=180, check=False)


def test_migrating_needs_the_database_and_no_key(servers: TestServers, tmp_path: Path) -> None:
    """Ours: no secret is where it is not used; the second run finds nothing to do (SRV-6)."""
    with servers.empty_database() as empty:
        for is_first in (True, False):
            done = _migrate(tmp_path, GATEWAY_DATABASE_URL=empty.owner_url, GATEWAY_HOST="0.0.0.0")
            assert done.returncode == 0, done.stderr
            assert bool(json.loads(done.stdout)["applied"]) is is_first

    assert list(tmp_path.iterdir()) == []
