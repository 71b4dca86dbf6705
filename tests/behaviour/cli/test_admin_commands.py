"""Tenants, keys, sources, tools, policy and audit from the command line, against a running gateway."""

import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.audit_verifier import ExportVerifier
from gateway.cli.exit_codes import ExitCode
from tests.behaviour.cli.conftest import Terminal
from tests.support.documents import many


async def test_a_tenant_lives_from_create_to_delete(terminal: Terminal) -> None:
    """Ours: every verb of a noun works and reports what it did (TEN-1)."""
    created = await terminal.do("tenant", "create", "acme", "--name", "Acme")
    listed = await terminal.do("tenant", "list")
    await terminal.do("tenant", "rename", "acme", "Acme Ltd")
    assert "Acme Ltd" in (await terminal.do("tenant", "show", "acme")).out
    renamed: Any = (await terminal.do("tenant", "update", "acme", "--name", "Acme & Co", "--json")).value
    shown: Any = (await terminal.do("tenant", "show", "acme", "--json")).value
    again: Any = (await terminal.do("tenant", "set", "acme", "--name", "Acme & Co", "--json")).value
    assert again == shown
    deleted = await terminal.do("tenant", "delete", "acme", "--yes")

    assert "/t/acme/mcp" in created.out
    assert listed.out.splitlines()[1].split()[:2] == ["acme", "Acme"]
    assert renamed["name"] == shown["name"] == "Acme & Co"
    assert deleted.out == "deleted acme\n"
    assert (await terminal.do("tenant", "list", "--json")).value == []


async def test_each_kind_of_refusal_has_its_exit_code_and_one_line(terminal: Terminal) -> None:
    """Ours: scripts rely on the documented exit codes (CLI-1)."""
    await terminal.create_tenant()
    refused = {
        6: await terminal.run("tenant", "create", "acme"),
        5: await terminal.run("tenant", "show", "missing"),
        4: await terminal.run("tenant", "list", GATEWAY_OPERATOR_KEY="x" * 40),
        3: await terminal.run("tenant", "list", GATEWAY_URL="http://127.0.0.1:1"),
        1: await terminal.run("tenant", "create", "Not_A_Slug"),
    }

    for code, ended in refused.items():
        assert ended.code == code, ended.err
        assert ended.out == ""
        assert ended.err.splitlines()[0].startswith("gateway: ")
    assert [len(refused[code].err.splitlines()) for code in (3, 4, 5)] == [1, 1, 1]
    assert "acme" in refused[6].err
    assert "/slug" in refused[1].err


async def test_wrong_usage_is_reported_before_a_request(terminal: Terminal) -> None:
    """Ours: exit code 2 means that the command line was wrong (CLI-1)."""
    for arguments in (
        ("tenant", "lst"),
        ("tenant", "show"),
        ("tenant", "list", "--limit", "0"),
        ("tenant", "delete", "acme"),
        ("key", "create", "k", "--scope", "everything"),
        ("policy", "update"),
        ("source", "update", "pets"),
        ("source", "add", "pets", "no-such-file.json"),
        ("source", "add", "pets", "x", "--credential", "nothing"),
    ):
        assert (await terminal.run(*arguments)).code == 2, arguments
    assert (await terminal.run("tool", "list", GATEWAY_TENANT="")).code == 2
    assert (await terminal.run("tenant", "list", "--url", "gateway.example.com")).code == 2


async def test_a_key_is_shown_once_and_can_be_rotated_revoked_and_deleted(terminal: Terminal) -> None:
    """Ours: the secret is printed when it is made and never again (TEN-2)."""
    await terminal.create_tenant()
    created: Any = (
        await terminal.do("key", "create", "ci", "--scope", "mcp", "--expires", "2090-01-01", "--json")
    ).value
    rotated: Any = (await terminal.do("key", "rotate", created["id"], "--json")).value
    shown = await terminal.do("key", "show", "ci")
    with_both: Any = (await terminal.do("key", "rotate", "ci", "--overlap", "1h", "--json")).value
    refused = await terminal.run("key", "rotate", created["id"], "--overlap", "1h")
    ended: Any = (await terminal.do("key", "end-old-secret", "ci", "--json")).value
    kept = await terminal.run("key", "revoke", "ci", typed="n\n")
    revoked = await terminal.do("key", "revoke", "ci")
    listed: Any = (await terminal.do("key", "list", "--json")).value
    await terminal.do("key", "delete", "ci", "--yes")

    assert created["expires_at"].startswith("2090-01-01T00:00:00")
    assert rotated["key"] not in {created["key"], None}
    assert rotated["subject"] == created["subject"]
    assert created["key"] not in shown.out
    assert (with_both["old_secret_until"] is not None, ended["old_secret_until"]) == (True, None)
    assert (refused.code != 0, "end-old-secret" in refused.err) == (True, True), refused.err
    assert (kept.code, "Revoke key ci?" in kept.err + kept.out) == (1, True)
    assert revoked.out == "revoked ci\n"
    assert [item["revoked_at"] is not None for item in listed] == [True]
    assert (await terminal.run("key", "show", created["id"])).code == 5
    twins: Any = [(await terminal.do("key", "create", "ci", "--expires", "30d", "--json")).value for _ in range(2)]
    left = datetime.fromisoformat(twins[0]["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=29) < left <= timedelta(days=30)
    assert (await terminal.run("key", "create", "cd", "--expires", "xd")).code == 2
    doubtful = await terminal.run("key", "revoke", "ci")
    assert doubtful.code == 2
    assert all(twin["id"] in doubtful.err for twin in twins)
    await terminal.do("key", "revoke", twins[0]["id"])
    assert (await terminal.do("key", "show", "ci", "--json")).value["id"] == twins[1]["id"]  # type: ignore[index]
    assert (await terminal.run("key", "rotate", "cd")).code == 5
    await terminal.do("access", "check", "--as-key", "ci")


async def test_all_keys_are_rotated_with_a_report(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: each key has an outcome, new texts go to a private file, and the key in use is the last (TEN-2)."""
    await terminal.create_tenant()
    made: Any = [(await terminal.do("key", "create", name, "--json")).value for name in ("a", "b")]
    admin: Any = (await terminal.do("key", "create", "ci", "--scope", "admin", "--json")).value
    await terminal.do("key", "revoke", made[1]["id"])
    file = tmp_path / "new-keys.json"
    for arguments in (["--all", "a"], [], ["a", "--older-than", "1d"], ["--all", "--yes"], ["--all", "--secrets", "-"]):
        assert (await terminal.run("key", "rotate", *arguments)).code == 2, arguments
    none = await terminal.do("key", "rotate", "--all", "--older-than", "1d", "--yes", "--json")
    assert none.value == []

    some = await terminal.run("key", "rotate", "--all", "--yes", "--secrets", str(file), "--key", admin["key"])
    lines = [line.split() for line in some.out.splitlines() if line.startswith("key_")]
    assert some.code == ExitCode.SOME_FAILED, some.err
    assert [(name, outcome.rstrip(":")) for _, name, outcome, *_ in lines] == [("a", "failed"), ("ci", "rotated")]
    assert "Rotating key 2 of 2: ci" in some.err
    [written] = json.loads(file.read_text())
    assert (file.stat().st_mode & 0o777, written["secret"] in some.out + some.err) == (0o600, False)
    assert (await terminal.run("key", "list", "--key", admin["key"])).code == 4
    assert (await terminal.run("key", "rotate", "--all", "--yes", "--secrets", str(file))).code == 2, "the file exists"

    every: Any = (await terminal.do("key", "rotate", "--all", "--yes", "--secrets", "-", "--json")).value
    assert {one["name"]: one["outcome"] for one in every} == {"a": "rotated", "ci": "rotated"}
    assert len({one["key"] for one in every} - {written["secret"]}) == 2


async def test_a_document_is_tried_imported_reported_updated_and_deleted(terminal: Terminal, pets_file: Path) -> None:
    """Ours: a report shows the outcome of every operation, and the cost of the tools (OAS-1, OAS-3)."""
    await terminal.create_tenant()
    tried = await terminal.do("source", "add", "pets", str(pets_file), "--dry-run")
    assert (await terminal.do("source", "list", "--json")).value == []

    added = await terminal.do("source", "add", "pets", "-", given=pets_file.read_text())
    report = await terminal.do("source", "report", "pets")
    updated: Any = (await terminal.do("source", "update", "pets", "--prefix", "my_", "--json")).value
    replaced: Any = (await terminal.do("source", "update", "pets", str(pets_file), "--json")).value
    kept = ("source", "update", "pets", "--include-method", "GET")
    tried_again = await terminal.do(*kept, "--dry-run")
    refused = await terminal.run(*kept)
    reduced: Any = (await terminal.do(*kept, "--yes", "--json")).value
    await terminal.do("source", "delete", "pets", "-y")

    assert "CALLS IN 7 DAYS" in tried_again.out
    assert (refused.code, reduced["report"]["counts"]["ok"]) == (6, 2)
    assert "would remove 2 tools, 0 of them called" in refused.err.splitlines()[0]
    assert "give --yes" in refused.err.splitlines()[0]
    assert "my_create_pet (POST /pets)" in refused.err
    for ended in (tried, added, report):
        assert "4 operations: 4 ok, 0 degraded, 0 skipped" in ended.out
        assert "tokens (estimate: bytes / 4)" in ended.out
    assert "nothing was stored" in tried.out
    assert "Waiting while the gateway imports" in added.err
    assert "LARGEST TOOLS" in report.out
    assert "/pets/{id}" in report.out
    assert updated["prefix"] == replaced["prefix"] == "my_"
    assert all(operation["tool"].startswith("my_") for operation in replaced["report"]["operations"])
    assert (await terminal.run("source", "show", "pets")).code == 5


async def test_a_document_that_cannot_be_parsed_names_line_and_column(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: where and why, and nothing is stored (OAS-1)."""
    await terminal.create_tenant()
    broken = tmp_path / "broken.yaml"
    broken.write_text("openapi: 3.1.0\npaths:\n  /a: [\n")

    ended = await terminal.run("source", "add", "broken", str(broken))

    assert ended.code == 1
    assert "line 4" in ended.err
    assert (await terminal.do("source", "list", "--json")).value == []


async def test_a_taken_name_names_its_owner(terminal: Terminal, pets_file: Path) -> None:
    """Ours: a clash stores nothing and suggests a way out (PRG-4)."""
    await terminal.create_tenant()
    await terminal.do("source", "add", "pets", str(pets_file))

    ended = await terminal.run("source", "add", "more", str(pets_file))

    assert ended.code == 6
    assert "source:pets" in ended.err
    assert "--prefix" in ended.err


async def test_lists_are_whole_however_many_pages_they_have(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: pages are followed (CLI-1)."""
    await terminal.create_tenant()
    path = tmp_path / "many.json"
    path.write_text(json.dumps(many("https://api.example.com", 230)))
    await terminal.do("source", "add", "many", str(path))

    every: Any = (await terminal.do("tool", "list", "--json")).value
    some: Any = (await terminal.do("tool", "list", "--limit", "3", "--json")).value

    assert len({tool["name"] for tool in every}) == 230
    assert [tool["name"] for tool in some] == [tool["name"] for tool in every[:3]]


async def test_the_policy_changes_only_the_given_members(terminal: Terminal) -> None:
    """Ours: an absent option changes nothing; a name that no policy knows is refused (SAF-2)."""
    await terminal.create_tenant()

    changed: Any = (await terminal.do("policy", "update", "--dangerous", "deny", "--limit", "burst=7", "--json")).value
    later = await terminal.run("policy", "update", "--moderate", "maybe")
    shown = await terminal.do("policy", "show")

    assert (changed["safe"], changed["moderate"], changed["dangerous"]) == ("allow", "allow", "deny")
    assert changed["limits"]["burst"] == 7
    assert changed["limits"]["concurrency"] == 64
    assert later.code == 2
    assert shown.out.splitlines()[2].split() == ["dangerous", "deny"]


async def test_private_upstreams_are_permitted_and_withdrawn(terminal: Terminal) -> None:
    """Ours: entries are added to stored ones and removed one by one or all; invalid ones give the reason (ISO-5)."""
    await terminal.create_tenant()
    egress = ("tenant", "egress", "acme")

    none = await terminal.do(*egress)
    one: Any = (await terminal.do(*egress, "--allow", "Billing.internal:8443", "--json")).value
    two: Any = (await terminal.do(*egress, "--allow", "10.0.0.5:80", "--allow", "10.0.0.6:80", "--json")).value
    shown = await terminal.do(*egress)
    less: Any = (await terminal.do(*egress, "--withdraw", "BILLING.internal:8443", "--json")).value
    unknown = await terminal.run(*egress, "--withdraw", "10.0.0.7:80")
    broken = await terminal.run(*egress, "--allow", "10.0.0.0/8:80")
    cleared: Any = (await terminal.do(*egress, "--withdraw", "all", "--json")).value

    socket: Any = (await terminal.do(*egress, "--allow", "unix:/run/Editor.sock", "--json")).value
    gone: Any = (await terminal.do(*egress, "--withdraw", "unix:/run/Editor.sock", "--json")).value

    assert none.out == "acme may reach no private upstream beside those in GATEWAY_EGRESS_ALLOW\n"
    assert (socket, gone) == ({"allow": ["unix:/run/Editor.sock"]}, {"allow": []})
    assert one == {"allow": ["billing.internal:8443"]}
    assert two == {"allow": ["10.0.0.5:80", "10.0.0.6:80", "billing.internal:8443"]}
    assert shown.out.split() == two["allow"]
    assert less == {"allow": ["10.0.0.5:80", "10.0.0.6:80"]}
    assert (unknown.code, broken.code) == (2, 1)
    assert "the tenant's list has 10.0.0.5:80, 10.0.0.6:80" in unknown.err
    assert "must be an exact host:port" in broken.err
    assert cleared == {"allow": []}


async def test_ceilings_are_set_restored_and_named_where_a_limit_is_above(terminal: Terminal) -> None:
    """ISO-3: the operator's command; a tenant's own key is refused in one line that names the remedy."""
    await terminal.create_tenant()
    own: Any = (await terminal.do("key", "create", "boss", "--scope", "admin", "--json")).value

    changed: Any = (await terminal.do("ceilings", "update", "--burst", "9", "--streams", "5", "--json")).value
    above = await terminal.run("policy", "update", "--limit", "burst=10", "--key", own["key"])
    other = await terminal.run("ceilings", "update", "--burst", "10", "--key", own["key"])
    restored: Any = (await terminal.do("ceilings", "update", "--streams", "default", "--json")).value
    bounds = ("--admin-keys", "20", "--admin-key-lifetime", "90d", "--admin-scope", "mcp", "--no-admin-issuers")
    bounded: Any = (await terminal.do("ceilings", "update", *bounds, "--json")).value
    assert bounded["admin_bounds"] == {"keys": 20, "key_lifetime_s": 7_776_000, "scopes": ["mcp"], "issuers": False}
    refused = await terminal.run("ceilings", "set", "--burst", "9", "--admin-keys", "20")
    freed: Any = (await terminal.do("ceilings", "set", "--burst", "9", "--replace", "--json")).value
    assert freed["admin_bounds"] == {"keys": None, "key_lifetime_s": None, "scopes": None, "issuers": True}
    shown = await terminal.do("ceilings", "show")
    policy = await terminal.do("policy", "show")
    safe = await terminal.run("policy", "update", "--dangerous", "deny", "--key", own["key"])

    assert (changed["burst"], changed["streams"]) == (9, 5)
    assert restored["status"]["defaulted"] == ["calls_per_second", "concurrency", "sessions", "streams", "primitives"]
    assert (above.code, other.code) == (4, 4)
    assert "above the tenant's ceiling of 9; only the operator can raise it" in above.err
    assert "/admin_bounds/key_lifetime_s: would replace 7776000 by null" in refused.err
    assert ["streams", "default"] in [line.split() for line in shown.out.splitlines()]
    assert "200, cut to its ceiling 9" in policy.out
    assert safe.code == 0
    for bad in ("0", "x", "1.5"):
        assert (await terminal.run("ceilings", "update", "--burst", bad)).code == 2, bad


async def test_changes_from_the_command_line_are_audited(terminal: Terminal) -> None:
    """Ours: changes made from the command line are audited like any others (SAF-4)."""
    await terminal.create_tenant()
    await terminal.do("key", "create", "ci")

    entries: Any = (await terminal.do("audit", "list", "--json")).value
    table = await terminal.do("audit", "list", "--limit", "1")
    explained = await terminal.do("audit", "explain", str(entries[0]["id"]))
    verified = await terminal.do("audit", "verify")

    assert len(entries) >= 2
    assert "change" in explained.out
    assert "(since 20" in verified.out
    for printed in (table, explained, verified):
        assert re.search(r":\d\d\.\d", printed.out) is None, "times for people have whole seconds"
    assert {entry["principal"] for entry in entries} == {"operator"}
    assert len(table.out.splitlines()) == 2


async def test_a_trail_is_exported_and_verified_with_its_key(terminal: Terminal) -> None:
    """Ours: three commands take a trail out of the gateway and prove it (SAF-8)."""
    await terminal.create_tenant()
    await terminal.do("key", "create", "ci")
    file = terminal.folder / "export.jsonl"
    await terminal.do("audit", "export", "--output", str(file))
    printed = await terminal.do("audit", "export", "--kind", "change")
    found: Any = (await terminal.do("audit", "keys", "--json")).value
    table = await terminal.do("audit", "keys")
    refused = await terminal.run("audit", "export", "--since", "yesterday")

    public = bytes.fromhex(found["keys"][0]["public"])
    whole = ExportVerifier([public], tenant=found["tenant"]).verify(io.BytesIO(file.read_bytes()))
    part = ExportVerifier([public]).verify(io.BytesIO(printed.out.encode()))
    assert (whole.faults, whole.entries, part.faults, part.entries) == ([], 2, [], 2)
    assert found["keys"][0]["public"] in table.out
    assert (refused.code, refused.out) == (2, "")


async def test_a_trail_is_verified_against_itself_and_against_an_earlier_result(terminal: Terminal) -> None:
    """Ours: a fault makes the exit code 1, also one that only the holder of an earlier result can see (SAF-4)."""
    await terminal.create_tenant()
    await terminal.do("key", "create", "ci")
    kept = terminal.folder / "verified.json"
    kept.write_text((await terminal.do("audit", "verify", "--json")).out)
    await terminal.do("key", "create", "cd")

    whole = await terminal.do("audit", "verify", "--since", str(kept))
    lost = json.loads(kept.read_text())
    lost["writers"] += [{**lost["writers"][0], "writer": "f" * 16}]
    lost["writers"][0]["last"] = 99
    kept.write_text(json.dumps(lost))
    cut = await terminal.run("audit", "verify", "--since", str(kept))
    as_json = await terminal.run("audit", "verify", "--since", str(kept), "--json")
    kept.write_text("[]")
    unusable = await terminal.run("audit", "verify", "--since", str(kept))

    assert whole.out.startswith("ok: 3 entries of 1 writer")
    assert "anchor: created" in whole.out
    assert "redis: nothing to compare" in whole.out
    assert cut.code == as_json.code == 1
    assert [line.split()[:1] for line in cut.out.splitlines()[5:]] == [["catalog"], ["f" * 16]]
    shown: Any = as_json.value
    assert shown["ok"] is False
    assert {chain["fault"]["kind"] for chain in shown["writers"]} == {"shortened"}
    assert unusable.code == 2


async def test_a_list_is_searched_filtered_and_ordered(terminal: Terminal) -> None:
    """Ours: the options of `list` narrow and order what is listed (CLI-1, ADM-1)."""
    await terminal.create_tenant()
    made: Any = [(await terminal.do("key", "create", name, "--json")).value for name in ("B_one", "a%two", "c")]
    await terminal.do("key", "revoke", made[2]["id"])

    async def names(*options: str) -> list[str]:
        listed: Any = (await terminal.do("key", "list", *options, "--json")).value
        return [item["name"] for item in listed]

    assert await names("--sort", "name") == ["B_one", "a%two", "c"]
    assert await names("--sort=-created_at", "--limit", "2") == ["c", "a%two"]
    assert await names("--search", "b_O") == ["B_one"]
    assert await names("--search", "%") == ["a%two"]
    assert await names("--state", "revoked", "--scope", "mcp") == ["c"]


async def test_a_source_is_set_again_and_again(terminal: Terminal, pets_file: Path) -> None:
    """Ours: `source set` imports, and replaces document and options of a source that is there (OAS-6, CLI-1)."""
    await terminal.create_tenant()
    first = await terminal.do("source", "set", "pets", str(pets_file), "--prefix", "p_")
    assert "pets is imported" in first.out
    refused = await terminal.run("source", "set", "pets", str(pets_file), "--exclude-method", "DELETE")
    assert (refused.code, "--yes" in refused.err) == (6, True)
    again: Any = (await terminal.do("source", "set", "pets", str(pets_file), "--json")).value
    assert (again["prefix"], again["status"]["active_version"]) == (None, 2)


async def test_a_sink_of_the_trail_lives_from_create_to_delete(terminal: Terminal) -> None:
    """Ours: an outside system is declared, paused, shown and deleted, and each command reports what it did (PRG-3)."""
    await terminal.create_tenant()
    target = ("siem", "https", "https://siem.example.com/trail")
    made: Any = (await terminal.do("audit", "sink", "create", *target, "--json")).value
    assert (made["name"], made["target"], made["enabled"]) == ("siem", target[2], True)
    assert "siem.example.com" in (await terminal.do("audit", "sink", "list")).out
    paused: Any = (await terminal.do("audit", "sink", "update", "siem", "--disable", "--json")).value
    assert (paused["id"], paused["enabled"]) == (made["id"], False)
    lines = (await terminal.do("audit", "sink", "show", "siem")).out.splitlines()
    assert ["enabled", "no"] in [line.split() for line in lines]

    assert (await terminal.run("audit", "sink", "delete", "siem")).code == 2, "no confirmation was given"
    assert (await terminal.do("audit", "sink", "delete", "siem", "--yes", "--json")).value == {"deleted": "siem"}
    assert (await terminal.do("audit", "sink", "list", "--json")).value == []


@pytest.mark.parametrize("name", ["egress", "ceilings", "policy", "access", "audit retention"])
async def test_output_of_show_is_set_again_without_a_change(terminal: Terminal, name: str) -> None:
    """Ours: `show --json` of every singleton is what `set -` takes, and nothing changes (CLI-1, ADM-1)."""
    await terminal.create_tenant()
    await terminal.do("policy", "update", "--dangerous", "deny", "--limit", "burst=7")
    await terminal.do("ceilings", "update", "--burst", "300", "--no-admin-issuers")
    words = name.split()
    shown = await terminal.do(*words, "show", "--json")
    again = await terminal.do(*words, "set", "-", "--json", given=shown.out)
    entries: Any = (await terminal.do("audit", "list", "--limit", "1", "--json")).value
    assert again.value == shown.value
    assert entries[0]["action"] == "ceilings.update"
