"""Extras that are wrong end the start of a gateway, and say which setting, which object and which field."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gateway import OPERATOR_KEY, SECRET_KEY

EXTRAS = """
from gateway.embed import ExtraTool

GOOD = ExtraTool(
    definition={"name": "say", "description": "Says it.", "inputSchema": {"type": "object", "properties": {}}},
    handler=lambda context: "x",
)
NAMELESS = [GOOD, ExtraTool(definition={**GOOD.definition, "name": "a b"}, handler=GOOD.handler)]
"""


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("operators_own:MISSING", ["GATEWAY_EXTRA_TOOLS: operators_own:MISSING", "MISSING"]),
        ("operators_own:NAMELESS", ["GATEWAY_EXTRA_TOOLS: operators_own:NAMELESS[1]", "name"]),
        ("operators_own:GOOD,operators_own:GOOD", ["GATEWAY_EXTRA_TOOLS: operators_own:GOOD", "'say'"]),
    ],
)
def test_a_gateway_with_a_wrong_extra_does_not_start(
    value: str, said: list[str], tmp_path: Path, database_url: str, redis_url: str
) -> None:
    """Ours: `gateway serve` ends at once with one line (PRG-2)."""
    (tmp_path / "operators_own.py").write_text(EXTRAS)
    environment = {name: text for name, text in os.environ.items() if not name.startswith("GATEWAY_")} | {
        "PYTHONPATH": str(tmp_path),
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_REDIS_URL": redis_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_PORT": "0",
        "GATEWAY_EXTRA_TOOLS": value,
    }
    command = [sys.executable, "-m", "gateway", "serve"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    for words in said:
        assert words in ended.stderr
