"""Invalid extras end the start of a gateway, and the message names the setting, the object and the field."""

import os
from pathlib import Path

import pytest

from tests.support.commands import run_gateway
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
    ("value", "reported"),
    [
        ("operators_own:MISSING", ["GATEWAY_EXTRA_TOOLS: operators_own:MISSING", "MISSING"]),
        ("operators_own:NAMELESS", ["GATEWAY_EXTRA_TOOLS: operators_own:NAMELESS[1]", "name"]),
        ("operators_own:GOOD,operators_own:GOOD", ["GATEWAY_EXTRA_TOOLS: operators_own:GOOD", "'say'"]),
    ],
)
async def test_a_gateway_with_a_wrong_extra_does_not_start(
    value: str, reported: list[str], tmp_path: Path, database_url: str, redis_url: str
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
    ended = await run_gateway(["serve"], folder=tmp_path, variables=environment)

    assert ended.code != 0
    assert "Traceback" not in ended.err
    for words in reported:
        assert words in ended.err
