"""Primitives, profiles and credentials from the command line, declared in files."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.primitives import NAMED, prompt, static_tool, template, text_prompt, text_resource, tool
from tests.support.upstream import RecordingUpstream

GREET = prompt("greet", {"kind": "template", "text": "Hi {{ who }}"}, arguments=[{"name": "who", "required": True}])
ROWS = template("docs://rows/{id}", {"kind": "template", "text": "row {{ id }}", "mimeType": "text/plain"})
NOUNS: list[tuple[str, dict[str, Any], str, list[str], str]] = [
    ("tool", static_tool("say"), "say", ["say"], "hello"),
    ("resource", text_resource("docs://a?b"), "docs://a?b", ["docs://a?b"], "hello"),
    ("resource-template", ROWS, "docs://rows/{id}", ["docs://rows/7"], "row 7"),
    ("prompt", GREET, "greet", ["greet", "who=Bo"], "user: Hi Bo"),
]


@pytest.mark.parametrize(("noun", "body", "name", "tried", "reported"), NOUNS, ids=[noun[0] for noun in NOUNS])
async def test_a_primitive_lives_from_validate_to_delete(
    terminal: Terminal, noun: str, body: dict[str, Any], name: str, tried: list[str], reported: str
) -> None:
    """Ours: every family is declared, shown, switched, tried, changed and removed from files (PRG-3)."""
    await terminal.create_tenant()
    (terminal.folder / "one.json").write_text(json.dumps(body))
    assert "safe" in (await terminal.do(noun, "validate", "one.json")).out
    assert (await terminal.do(noun, "list", "--json")).value == []
    created: Any = (await terminal.do(noun, "create", "-", "--json", given=json.dumps(body))).value
    shown: Any = (await terminal.do(noun, "show", name, "--json")).value
    by_id: Any = (await terminal.do(noun, "show", created[0]["id"], "--json")).value
    assert shown == by_id == created[0]
    assert reported in (await terminal.do(noun, "try", *tried)).out
    assert (await terminal.do(noun, "disable", name)).out == f"disabled {name}\n"
    listed = await terminal.do(noun, "list")
    assert tuple(listed.out.splitlines()[1].split()[1:3]) == ("no", "safe")
    assert (await terminal.run(noun, "try", *tried)).code in {5, 6}
    await terminal.do(noun, "enable", name)
    changed = {**body, "safety": "dangerous"}
    (terminal.folder / "two.json").write_text(json.dumps(changed))
    updated: Any = (await terminal.do(noun, "update", "two.json", "--json")).value
    assert (updated[0]["id"], updated[0]["safety"]) == (created[0]["id"], "dangerous")
    again: Any = (await terminal.do(noun, "set", "-", "--json", given=json.dumps(updated[0]))).value
    assert again == updated, "`show --json | set -` changed it"
    assert (await terminal.run(noun, "delete", name)).code == 2
    assert (await terminal.do(noun, "delete", name, "--yes")).out == f"deleted {name}\n"
    assert (await terminal.run(noun, "show", name)).code == 5


async def test_a_file_declares_many_and_a_refusal_names_the_place(terminal: Terminal) -> None:
    """Ours: of several documents none is stored if one is invalid, and the refusal names its place (PRG-3, CLI-1)."""
    await terminal.create_tenant()
    documents = [static_tool("one"), static_tool("two"), tool("three", {"kind": "http", "method": "GET"})]
    (terminal.folder / "tools.yaml").write_text("\n---\n".join(json.dumps(one, indent=1) for one in documents))
    (terminal.folder / "good.yaml").write_text("--- # first\n" + json.dumps(static_tool("one")))

    refused = await terminal.run("tool", "create", "tools.yaml")
    assert refused.code in {1, 2}
    assert "document 3" in refused.err
    assert "/handler/url" in refused.err
    assert (await terminal.run("tool", "show", "one")).code == 5
    await terminal.do("tool", "create", "good.yaml")
    taken = await terminal.run("tool", "create", "good.yaml")
    assert (taken.code, "belongs to custom" in taken.err) == (6, True)
    (terminal.folder / "two.json").write_text(json.dumps([static_tool("two"), static_tool("one")]))
    half = await terminal.run("tool", "create", "two.json")
    assert (half.code, "done before the refusal, 1 of 2: two" in half.err) == (6, True)
    assert (await terminal.run("tool", "create", "none.yaml")).code == 2


async def test_declared_objects_are_created_or_replaced(terminal: Terminal) -> None:
    """Ours: `set` may be repeated, whatever characters a name has; the older `tool put` too (PRG-3, CLI-1)."""
    await terminal.create_tenant()
    declared = {
        "tool": ("set", [static_tool("say"), static_tool("pets/list")]),
        "resource": ("set", [text_resource("docs://a?b=c")]),
    }
    for noun, (verb, bodies) in declared.items():
        (terminal.folder / "many.json").write_text(json.dumps(bodies))
        made: Any = (await terminal.do(noun, verb, "many.json", "--json")).value
        (terminal.folder / "many.json").write_text(json.dumps([{**body, "safety": "dangerous"} for body in bodies]))
        replaced: Any = (await terminal.do(noun, verb, "many.json", "--json")).value
        assert [one["id"] for one in replaced] == [one["id"] for one in made]
        assert {one["safety"] for one in replaced} == {"dangerous"}
    assert (await terminal.run("tool", "put", "-", given='{"definition": {}, "handler": {}}')).code == 2


async def test_a_trial_shows_the_sent_request(terminal: Terminal, upstream: RecordingUpstream) -> None:
    """Ours: an admin sees the request and the answer, and never the credential (PRG-3, TEN-4)."""
    await terminal.create_tenant()
    secret = {"name": "token", "place": "bearer", "value": "s3cr3t-canary", "origins": [upstream.url]}
    stored = await terminal.do("credential", "create", "-", given=json.dumps(secret))
    url = f"{upstream.url}/hello/{{{{ name }}}}"
    fetch = tool("fetch", {"kind": "http", "method": "GET", "url": url, "credential": "token"}, schema=NAMED)
    await terminal.do("tool", "create", "-", given=json.dumps(fetch))
    tried = await terminal.do("tool", "try", "fetch", "name=Bo")
    assert f"GET {upstream.url}/hello/Bo" in tried.out
    assert upstream.seen[-1].header("authorization") == "Bearer s3cr3t-canary"
    refused = await terminal.run("tool", "try", "fetch")
    assert (refused.code, "/arguments" in refused.err) == (1, True)
    in_use = await terminal.run("credential", "delete", "token", "--yes")
    assert (in_use.code, "used by tool fetch" in in_use.err) == (6, True)
    shown = await terminal.do("credential", "show", "token")
    listed = await terminal.do("credential", "list", "--json")
    await terminal.do("credential", "update", "-", given=json.dumps({**secret, "value": "other"}))
    assert "s3cr3t-canary" not in "".join((stored.out, tried.out, shown.out, listed.out))


async def test_a_profile_lives_from_create_to_delete(terminal: Terminal) -> None:
    """Ours: a profile shows what it costs (CAP-1)."""
    await terminal.create_tenant()
    await terminal.do("tool", "create", "-", given=json.dumps([static_tool("say"), static_tool("tell")]))
    wanted = "name: small\ndescription: Only one.\ninclude:\n  - names: [say]\n"
    await terminal.do("profile", "create", "-", given=wanted)
    listed = await terminal.do("profile", "list")
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [["default", "2"], ["small", "1"]]
    await terminal.do("profile", "update", "-", given=wanted + "  - names: [tell]\n")
    shown: Any = (await terminal.do("profile", "show", "small", "--json")).value
    assert shown["status"]["counts"]["tools"] == 2
    assert "names=tell" in (await terminal.do("profile", "show", "small")).out
    await terminal.do("profile", "delete", "small", "--yes")
    assert (await terminal.run("profile", "delete", "default", "--yes")).code == 6


async def test_profiles_and_credentials_take_their_fields_as_options(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: no file is needed for one item; `set` creates it or replaces it (PRG-3, TEN-4)."""
    await terminal.create_tenant()
    rules = ("--include-safety", "safe", "--include-name", "say*", "--exclude-name", "x", "--exclude-tag", "old")
    await terminal.do("profile", "create", "--name", "small", "--description", "Reading alone", *rules)
    made: Any = (await terminal.do("profile", "show", "small", "--json")).value
    kept = await terminal.run("profile", "set", "--name", "small", "--include-method", "get")
    assert (kept.code, '/include/0: would remove {"names":["say*"],"safety":["safe"]}' in kept.err) == (6, True)
    again = await terminal.do("profile", "set", "--name", "small", "--include-method", "get", "--replace")
    fresh = await terminal.do("profile", "set", "--name", "other")
    listed: Any = (await terminal.do("profile", "list", "--json")).value
    assert (made["description"], made["include"][0]["safety"], made["include"][0]["names"]) == (
        "Reading alone",
        ["safe"],
        ["say*"],
    )
    assert [(rule["names"], rule["tags"]) for rule in made["exclude"]] == [(["x"], []), ([], ["old"])]
    assert (again.out, fresh.out) == ("set small\n", "set other\n")
    assert {item["name"]: len(item["include"]) for item in listed} == {"default": 0, "small": 1, "other": 0}

    (tmp_path / "secret.txt").write_text("s3cr3t-canary\n")
    where = ("--origin", "https://a.example", "--origin", "https://b.example")
    login = ("--name", "robot", "--place", "basic", "--username", "bo", *where)
    ended = [
        await terminal.do("credential", "set", *login, "--secret", "env:PASSWORD", PASSWORD="s3cr3t-canary"),
        await terminal.do("credential", "set", *login[:4], "--username", "al", "--secret", "@secret.txt", *where[:2]),
        await terminal.do("credential", "show", "robot"),
    ]
    assert "https://b.example" not in ended[2].out
    assert "s3cr3t-canary" not in "".join(one.out + one.err for one in ended)
    for arguments in (("set",), ("set", "some.json", "--name", "x"), ("create", "--place", "bearer")):
        assert (await terminal.run("credential", *arguments)).code == 2
    missing = await terminal.run("credential", "set", "--name", "x", "--place", "bearer", "--secret", "env:NOT_THERE")
    assert (missing.code, "NOT_THERE is not set" in missing.err) == (2, True)


async def test_an_update_changes_only_the_given_members(terminal: Terminal) -> None:
    """Ours: `update` opens no profile and asks for no secret again; a file may hold one member (PRG-3, TEN-4)."""
    await terminal.create_tenant()
    rules = ("--include-name", "say*", "--exclude-tag", "old", "--structured-once")
    await terminal.do("profile", "create", "--name", "small", "--description", "Reading alone", *rules)
    where = ("--name", "robot", "--place", "bearer", "--origin", "https://a.example")
    await terminal.do("credential", "create", *where, "--secret", "env:PASSWORD", PASSWORD="s3cr3t-canary")
    before: Any = [
        (await terminal.do("profile", "show", "small", "--json")).value,
        (await terminal.do("credential", "show", "robot", "--json")).value,
    ]

    await terminal.do("profile", "update", "--name", "small", "--no-structured-once")
    await terminal.do("profile", "update", "-", given=json.dumps({"name": "small", "description": "Other"}))
    there = ("--place", "header", "--field", "X-Key")
    refused = await terminal.run("credential", "update", "robot", *there)
    assert (refused.code, "/place" in refused.err, "/field" in refused.err) == (1, True, True)
    await terminal.do("credential", "update", "robot", *there, "--secret", "env:PASSWORD", PASSWORD="other")
    await terminal.do("credential", "update", "--name", "robot", "--secret", "env:PASSWORD", PASSWORD="newest")
    refused = await terminal.run("credential", "update", "--name", "robot", "--origin", "https://b.example")

    profile: Any = (await terminal.do("profile", "show", "small", "--json")).value
    credential: Any = (await terminal.do("credential", "show", "robot", "--json")).value
    assert _changed(before[0], profile) == {"structured_once": False, "description": "Other"}
    changed = _changed(before[1], credential)
    assert {name: one for name, one in changed.items() if name != "status"} == {"place": "header", "field": "X-Key"}
    assert (refused.code, "/origins" in refused.err, "send the secret again" in refused.err) == (1, True, True)


async def test_a_change_of_a_resource_is_reported(terminal: Terminal) -> None:
    """Ours: the admin API's report of a changed resource, from the command line (RES-5)."""
    await terminal.create_tenant()
    await terminal.do("resource", "create", "-", given=json.dumps(text_resource("docs://a")))
    assert (await terminal.do("resource", "touch", "docs://a")).out == "reported that docs://a has changed\n"
    assert (await terminal.run("resource", "touch", "docs://b")).code == 5


async def test_a_policy_names_the_origins_that_handlers_may_call(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: `any` or a list of origins (CAL-4)."""
    assert tmp_path == terminal.folder
    await terminal.create_tenant()
    assert "any" in (await terminal.do("policy", "show")).out
    changed = await terminal.do(
        "policy", "update", "--http-origin", "https://A.example", "--http-origin", "http://b.c:80"
    )
    assert "http://b.c, https://a.example" in changed.out
    assert "https://a.example" in (await terminal.do("policy", "update", "--limit", "burst=7")).out
    refused = await terminal.run("tool", "create", "-", given=json.dumps(_fetching("https://c.example/")))
    assert "/handler/url" in refused.err
    assert "any" in (await terminal.do("policy", "update", "--http-origin", "any")).out
    assert (await terminal.run("policy", "update", "--http-origin", "any", "--http-origin", "http://b.c")).code == 2
    await terminal.do("prompt", "create", "-", given=json.dumps(text_prompt("greet")))


async def test_a_policy_names_the_arguments_that_are_recorded(terminal: Terminal, tmp_path: Path) -> None:
    """Ours: from a file, as the page about the trail shows it; other files change nothing (CLI-1)."""
    await terminal.create_tenant()
    (tmp_path / "recorded.yaml").write_text(
        "recorded_arguments:\n  - {tool: refund_*, keep: [/amount], hash: [/customer]}\n"
    )
    (tmp_path / "rules.yaml").write_text("rules: []\n")
    shown = (await terminal.do("policy", "update", "--record", "recorded.yaml")).out
    assert "tool refund_*: keep /amount; hash /customer" in shown
    assert (await terminal.run("policy", "update", "--record", "rules.yaml")).code == 2
    assert "refund_*" in (await terminal.do("policy", "update", "--rules", "rules.yaml")).out
    assert "refund_*" not in (await terminal.do("policy", "update", "--no-record")).out


def _fetching(url: str) -> dict[str, Any]:
    return tool("fetch", {"kind": "http", "method": "GET", "url": url})


def _changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Differences, without the revision and times that every change gives."""
    assert before.keys() == after.keys()
    always = {"revision", "version", "updated_at"}
    return {name: value for name, value in after.items() if name not in always and before[name] != value}
