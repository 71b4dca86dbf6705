"""`gateway connect`: the file of a client on this machine, and the server that the client then finds."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.connect.clients import CLIENTS
from tests.behaviour.cli.conftest import Terminal


@pytest.fixture
async def key(terminal: Terminal, pets_file: Path) -> str:
    """A key of the tenant `acme`, which has the pets document."""
    await terminal.create_tenant()
    await terminal.do("source", "add", "pets", str(pets_file))
    created: Any = (await terminal.do("key", "create", "agent", "--scope", "mcp", "--json")).value
    return str(created["key"])


@pytest.mark.parametrize("client", ["cursor", "claude-desktop", "codex", "goose"])
async def test_a_client_finds_the_tools_after_one_command(
    client: str, terminal: Terminal, key: str, tmp_path: Path
) -> None:
    """Ours: each format, and both ways to reach a tenant, by URL and by program (CLI-1)."""
    home = {"HOME": str(tmp_path), "GATEWAY_KEY": key}
    file = tmp_path / CLIENTS[client].file
    shown = await terminal.run("connect", client, "--dry-run", **home)
    assert (shown.code, file.exists()) == (0, False)
    assert "/t/acme/mcp" in shown.out

    done: Any = (await terminal.do("connect", client, "--json", **home)).value
    again = await terminal.do("connect", client, **home)

    assert done["server"] == "acme"
    assert done["tools"] > 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "is there already" in again.err
    assert not file.with_name(f"{file.name}.before-gateway").exists()


async def test_a_change_is_undone_and_leaves_the_rest(terminal: Terminal, key: str, tmp_path: Path) -> None:
    """Ours: the former server of the name returns, what was added since stays, a refusal changes nothing (CLI-1)."""
    home = {"HOME": str(tmp_path), "GATEWAY_KEY": key}
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    before: dict[str, Any] = {"mcpServers": {"acme": {"url": "https://former.example"}}, "x": 1}
    file.write_text(json.dumps(before))

    refused = await terminal.run("connect", "cursor", **{**home, "GATEWAY_KEY": "mcpg_live_wrong"})
    assert (refused.code, json.loads(file.read_text())) == (4, before)
    await terminal.do("connect", "cursor", **home)
    content = json.loads(file.read_text())
    content["mcpServers"]["later"] = {}
    file.write_text(json.dumps(content))
    await terminal.do("connect", "cursor", "--undo", **home)

    assert json.loads(file.read_text()) == {"mcpServers": {**before["mcpServers"], "later": {}}, "x": 1}
    file.write_text('{ // mine\n "mcpServers": {}}')
    assert (await terminal.run("connect", "cursor", **home)).code == 1
    assert file.read_text().startswith("{ // mine")
    listed: Any = (await terminal.do("connect", "--json", **home)).value
    assert {one["client"] for one in listed if one["exists"]} == {"cursor"}
