"""Selection and options of a source, set and shown on the command line, against a running gateway."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.documents import pets


@pytest.fixture
async def acme(terminal: Terminal) -> Terminal:
    """With a tenant."""
    await terminal.create_tenant()
    return terminal


async def test_operations_are_chosen_and_shown(acme: Terminal, pets_file: Path) -> None:
    """Ours: the options choose, `show` prints the rules, and another document keeps them (OAS-3)."""
    spec = str(pets_file)
    added = await acme.do("source", "add", "pets", spec, "--include-method", "GET", "--exclude-path", "*{id}")
    shown = await acme.do("source", "show", "pets")
    updated: Any = (await acme.do("source", "update", "pets", spec, "--output-schemas", "--json")).value
    excluded: Any = (await acme.do("source", "update", "pets", "--exclude-operation", "list*", "-y", "--json")).value
    everything: Any = (await acme.do("source", "update", "pets", "--all-operations", "--json")).value

    assert "4 operations: 1 ok, 0 degraded, 3 skipped" in added.out
    assert "not selected: exclude rule 1 matches" in added.out
    lines = [line.split() for line in shown.out.splitlines()]
    assert ["include", "methods=GET"] in lines
    assert ["exclude", "paths=*{id}"] in lines
    assert updated["report"]["counts"] == {"ok": 1, "degraded": 0, "skipped": 3}
    assert (updated["output_schemas"], excluded["output_schemas"]) == (True, True)
    assert [item["tool"] for item in excluded["changes"]["removed"]] == ["list_pets"]
    assert [item["tool"] for item in excluded["changes"]["added"]] == ["get_pet"]
    assert everything["report"]["counts"]["skipped"] == 0


async def test_a_dry_run_shows_the_whole_table_and_the_changes(acme: Terminal, pets_file: Path, tmp_path: Path) -> None:
    """Ours: every operation, the price and the dearest tools before anything is stored, of an update too (OAS-3)."""
    tried = await acme.do("source", "add", "pets", str(pets_file), "--dry-run")
    await acme.do("source", "add", "pets", str(pets_file))
    report = await acme.do("source", "report", "pets")
    fresh = pets("https://pets.example")
    del fresh["paths"]["/pets"]["post"]
    fresh["paths"]["/toys"] = {"get": {"operationId": "list_toys"}}
    (tmp_path / "fresh.json").write_text(json.dumps(fresh))
    update = await acme.do("source", "update", "pets", str(tmp_path / "fresh.json"), "--dry-run")
    narrow: Any = (await acme.do("source", "update", "pets", "--include-tag", "none", "--dry-run", "--json")).value
    done = await acme.do("source", "update", "pets", "--prefix", "my")
    after = await acme.do("source", "report", "pets")

    table = report.out[: report.out.index("tokens (estimate: bytes / 4)")]
    assert table in tried.out
    assert "LARGEST TOOLS" in table
    assert [line.split()[0] for line in table.splitlines()[:5]] == ["STATUS", "ok", "ok", "ok", "ok"]
    assert "dry run of pets; nothing was stored" in tried.out
    changes = [line.split() for line in update.out[update.out.index("CHANGE") :].splitlines()]
    assert changes[1] == ["removed", "breaking", "POST", "/pets", "create_pet", "0"]
    assert ["added", "breaking,", "widening", "GET", "/toys", "list_toys"] in changes  # at another host
    assert "tools: 1 added, 1 removed, 0 renamed, " in update.out
    assert narrow["dry_run"] is True
    assert len(narrow["changes"]["removed"]) == 4
    assert "include rule 1 matches no operation of the document" in narrow["report"]["warnings"]
    assert "tools: 0 added, 0 removed, 4 renamed, 0 changed" in done.out
    assert "my_list_pets" in after.out


async def test_an_update_needs_something_to_change(acme: Terminal, pets_file: Path) -> None:
    """Ours: --dry-run alone changes nothing to report on (CLI-1)."""
    await acme.do("source", "add", "pets", str(pets_file))

    assert (await acme.run("source", "update", "pets", "--dry-run")).code == 2


async def test_a_source_names_the_credentials_that_it_lacks(acme: Terminal, tmp_path: Path) -> None:
    """Ours: `add`, `show` and a dry run name a need with its ways, and none once a credential is stored (OAS-3)."""
    flow: dict[str, object] = {
        "authorizationUrl": "https://login.example/auth",
        "tokenUrl": "https://login.example/token",
        "scopes": {},
    }
    document = pets("https://pets.example")
    schemes = {"o": {"type": "oauth2", "flows": {"authorizationCode": flow}}}
    document |= {"components": {"securitySchemes": schemes}, "security": [{"o": []}]}
    spec = tmp_path / "secured.json"
    spec.write_text(json.dumps(document))
    added = await acme.do("source", "add", "pets", str(spec))
    shown = await acme.do("source", "show", "pets")
    tried = await acme.do("source", "update", "pets", "--credential", "o=t", "--dry-run")
    stored: Any = (await acme.do("source", "update", "pets", "--credential", "o=t", "--json")).value
    after = [(await acme.do("source", command, "pets")).out for command in ("show", "report")]

    need = (
        "needs a credential: 4 operations, scheme o, two ways to give one\n  one token for all callers: --credential o="
    )
    assert "4 operations: 4 ok, 0 degraded, 0 skipped" in added.out
    assert need in added.out
    assert need in shown.out
    assert "--authorization-url https://login.example/auth --token-url https://login.example/token" in shown.out
    assert stored["report"]["needs"] == []
    assert not [text for text in (tried.out, *after) if "needs a" in text]


async def test_a_source_is_set_as_it_was_shown(acme: Terminal, pets_file: Path) -> None:
    """Ours: `show --json | set -` changes nothing, and a file declares the options of a source (CLI-1)."""
    await acme.do("source", "add", "pets", str(pets_file), "--exclude-path", "*{id}", "--prefix", "p")
    shown: Any = (await acme.do("source", "show", "pets", "--json")).value
    await acme.do("source", "set", "-", given=json.dumps(shown))
    assert (await acme.do("source", "show", "pets", "--json")).value == shown
    refused = await acme.run("source", "set", "-", given=json.dumps({"name": "pets", "prefix": "p"}))
    assert (refused.code, "/exclude/0" in refused.err) == (6, True), refused.err
    await acme.do("source", "set", "-", "--replace", given=json.dumps({"name": "pets", "prefix": "p"}))
    emptied: Any = (await acme.do("source", "show", "pets", "--json")).value
    assert emptied["exclude"] == []
    assert (await acme.run("source", "set", "-", "--prefix", "q", given="{}")).code == 2
