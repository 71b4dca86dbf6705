"""Overrides of imported tools from the command line."""

from pathlib import Path
from typing import Any

from tests.behaviour.cli.conftest import Terminal
from tests.support.documents import pets
from tests.support.gateway import RunningGateway


async def _import(terminal: Terminal, pets_file: Path) -> None:
    await terminal.create_tenant()
    await terminal.do("source", "add", "api", str(pets_file))


async def test_an_override_is_changed_step_by_step_and_deleted(terminal: Terminal, pets_file: Path) -> None:
    """Ours: pins and hints are added to the stored ones, by the kinds of the schema (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    update = ("override", "update")
    done = await terminal.do(*update, "get_pet", "--title", "Find", "--pin", "verbose=true", "--safety", "moderate")
    assert "updated get_pet" in done.out
    more = ["--pin", "id=7", "--no-hint-read-only", "--rename", "find_pet", "--hidden"]
    shown: Any = (await terminal.do(*update, "get_pet", *more, "--json")).value
    assert (shown["name"], shown["title"], shown["hidden"]) == ("find_pet", "Find", True)
    assert shown["pinned"] == {"verbose": True, "id": 7}
    assert shown["annotations"]["readOnlyHint"] is False
    fewer = ["--unpin", "id", "--title", "", "--no-hidden", "--result-pointer", "/items", "--result-keep", "/*/id"]
    shown = (await terminal.do(*update, "find_pet", *fewer, "--json")).value
    assert (shown["pinned"], shown["title"], shown["hidden"]) == ({"verbose": True}, None, None)
    assert shown["result"] == {"pointer": "/items", "keep": ["/*/id"], "drop": None}
    assert "find_pet" in (await terminal.do("source", "overrides", "api")).out
    listed: Any = (await terminal.do("source", "overrides", "api", "--json")).value
    assert [(one["operation"], one["tool"]) for one in listed] == [("GET /pets/{id}", "find_pet")]
    assert "GET /pets/{id}" in (await terminal.do("override", "list", "--source", "api")).out
    assert "verbose" in (await terminal.do("override", "show", "find_pet")).out
    await terminal.do("override", "delete", "find_pet", "--yes")
    assert (await terminal.do("source", "overrides", "api", "--json")).value == []
    assert "get_pet" in (await terminal.do("tool", "list")).out


async def test_an_override_is_declared(terminal: Terminal, pets_file: Path) -> None:
    """Ours: `create` and `set` name source and operation; what `show` prints can be given back (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    place = ["--source", "api", "--operation", "GET /pets/{id}"]
    await terminal.do("override", "create", "find_pet", *place, "--title", "Find", "--pin", "verbose=true")
    shown: Any = (await terminal.do("override", "show", "find_pet", "--json")).value
    assert (shown["title"], shown["pinned"]) == ("Find", {"verbose": True})
    (terminal.folder / "override.json").write_text((await terminal.do("override", "show", "find_pet", "--json")).out)
    assert (await terminal.do("override", "set", "override.json", "--json")).value == [shown]
    replaced: Any = (await terminal.do("override", "set", "find_pet", *place, "--disable", "--json")).value
    assert (replaced["title"], replaced["enabled"]) == (None, False)


async def test_commands_of_earlier_releases_change_overrides(terminal: Terminal, pets_file: Path) -> None:
    """Ours: `tool set NAME` with options is `override update`, under the names of its options then (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    given = ["--rename", "find_pet", "--title", "T", "--hide", "--hint", "read-only=no", "--pin", "verbose=true"]
    shown: Any = (await terminal.do("tool", "set", "get_pet", *given, "--keep", "/*/id", "--json")).value
    assert (shown["name"], shown["title"], shown["hidden"]) == ("find_pet", "T", True)
    assert (shown["annotations"]["readOnlyHint"], shown["pinned"]) == (False, {"verbose": True})
    assert shown["result"]["keep"] == ["/*/id"]
    fewer = ["--default", "title", "--default", "name", "--show", "--unpin", "verbose", "--pointer", "/a"]
    shown = (await terminal.do("tool", "set", "find_pet", *fewer, "--json")).value
    assert (shown["name"], shown["title"], shown["hidden"], shown["pinned"]) == ("get_pet", None, None, None)
    assert shown["result"]["pointer"] == "/a"
    await terminal.do("tool", "set", "get_pet", "--reset")
    assert (await terminal.do("override", "list", "--json")).value == []


async def test_wrong_overrides_name_the_mistake_or_the_place(terminal: Terminal, pets_file: Path) -> None:
    """Ours: mistakes end with a word on what to write, refusals with the place (OAS-6, CLI-1)."""
    await _import(terminal, pets_file)
    for arguments, reported in (
        ([], "nothing to change"),
        (["--hint", "safe=yes"], "is not a hint"),
        (["--unpin", "id"], "'id' is not pinned"),
        (["--title", "x", "--default", "title"], "cannot be combined"),
        (["--reset", "--title", "x"], "No such option"),
    ):
        refused = await terminal.run("tool", "set", "get_pet", *arguments)
        assert (refused.code, reported in refused.err) == (2, True), refused.err
    refused = await terminal.run("override", "update", "get_pet", "--pin", "idd=1")
    assert "/pinned/idd" in refused.err
    assert (await terminal.run("override", "update", "none", "--title", "x")).code == 5


async def test_an_override_without_operation_and_name_is_in_no_export(
    terminal: Terminal, gateway: RunningGateway, pets_file: Path
) -> None:
    """Ours: an id is that of one installation; an override that gives a name is exported under it (CFG-1)."""
    await _import(terminal, pets_file)
    await terminal.do("override", "update", "get_pet", "--title", "Find")
    await terminal.do("override", "update", "list_pets", "--rename", "all_pets")
    document = pets("https://pets.example")
    document["paths"] = {"/other": {"get": {"responses": {"200": {"description": "ok"}}}}}
    body = {"document": document, "allow_removals": True}
    (await gateway.admin.put("/tenants/acme/sources/api", json=body)).raise_for_status()
    assert "GET /pets/{id}" in (await terminal.do("override", "list", "--waiting")).out
    exported = (await terminal.do("export", "--kind", "override")).out
    assert ("name: all_pets" in exported, "ovr_" in exported) == (True, False)
    assert (await terminal.do("diff", "-f", "-", given=exported)).code == 0
