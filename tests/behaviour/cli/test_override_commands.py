"""Overrides of imported tools from the command line."""

from pathlib import Path
from typing import Any

from tests.behaviour.cli.conftest import Terminal


async def _import(terminal: Terminal, pets_file: Path) -> None:
    await terminal.create_tenant()
    await terminal.do("source", "add", "api", str(pets_file))


async def test_a_tool_is_set_step_by_step_and_reset(terminal: Terminal, pets_file: Path) -> None:
    """Ours: what is pinned and hinted goes on from what is stored, by the kinds of the schema (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    told = await terminal.do(
        "tool", "set", "get_pet", "--title", "Find", "--pin", "verbose=true", "--safety", "moderate"
    )
    assert "verbose=yes" in told.out
    more = ["--pin", "id=7", "--hint", "read-only=no", "--rename", "find_pet", "--hide"]
    shown: Any = (await terminal.do("tool", "set", "get_pet", *more, "--json")).value
    assert shown["status"]["override"]["pinned"] == {"verbose": True, "id": 7}
    assert shown["status"]["override"]["annotations"] == {"readOnlyHint": False}
    assert (shown["name"], shown["status"]["hidden"], shown["status"]["override"]["title"]) == (
        "find_pet",
        True,
        "Find",
    )
    fewer = ["--unpin", "id", "--default", "title", "--show", "--pointer", "/items", "--keep", "/*/id"]
    shown = (await terminal.do("tool", "set", "find_pet", *fewer, "--json")).value
    assert (shown["status"]["override"]["pinned"], shown["status"]["override"]["title"]) == ({"verbose": True}, None)
    assert (shown["status"]["override"]["result"], shown["status"]["hidden"]) == (
        {"pointer": "/items", "keep": ["/*/id"]},
        False,
    )
    assert "find_pet" in (await terminal.do("source", "overrides", "api")).out
    listed: Any = (await terminal.do("source", "overrides", "api", "--json")).value
    assert [(one["operation"], one["tool"]) for one in listed] == [("GET /pets/{id}", "find_pet")]
    assert "find_pet has no override" in (await terminal.do("tool", "set", "find_pet", "--reset")).out
    assert (await terminal.do("source", "overrides", "api", "--json")).value == []
    assert "get_pet" in (await terminal.do("tool", "list")).out


async def test_what_cannot_be_set_is_said(terminal: Terminal, pets_file: Path) -> None:
    """Ours: mistakes end with a word on what to write, refusals with the place (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    for arguments, said in (
        ([], "nothing to set"),
        (["--hint", "safe=yes"], "is not a hint"),
        (["--unpin", "id"], "'id' is not pinned"),
        (["--title", "x", "--default", "title"], "cannot be combined"),
        (["--reset", "--title", "x"], "give it without other options"),
        (["--reset", "--show"], "give it without other options"),
    ):
        refused = await terminal.run("tool", "set", "get_pet", *arguments)
        assert (refused.code, said in refused.err) == (2, True), refused.err
    refused = await terminal.run("tool", "set", "get_pet", "--pin", "idd=1")
    assert "/pinned/idd" in refused.err
    assert (await terminal.run("tool", "set", "none", "--title", "x")).code == 5
