"""Calls from the command line, through MCP and to the upstream."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.primitives import tool
from tests.support.upstream import RecordingUpstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A prompt with a tenant's key in its environment, as an agent's developer has it."""

    terminal: Terminal
    key: str

    async def call(self, *arguments: str, key: str | None = None, typed: str | None = None) -> tuple[int, str, str]:
        """Exit code, output and errors of `gateway call`."""
        wanted = self.key if key is None else key
        ended = await self.terminal.run("call", *arguments, typed=typed, GATEWAY_KEY=wanted, GATEWAY_OPERATOR_KEY="")
        return ended.code, ended.out, ended.err


@pytest.fixture
async def caller(terminal: Terminal, pets_file: Path) -> Caller:
    """The tenant `acme` with the pets document."""
    await terminal.create_tenant()
    await terminal.do("source", "add", "pets", str(pets_file))
    created: Any = (await terminal.do("key", "create", "agent", "--json")).value
    return Caller(terminal=terminal, key=created["key"])


async def test_typed_arguments_reach_the_upstream_as_their_types(caller: Caller, upstream: RecordingUpstream) -> None:
    """Ours: a number goes into the path, a boolean into the query, an object into the body (CAL-1)."""
    code, out, _ = await caller.call("get_pet", "id=7", "verbose=true")
    assert (code, json.loads(out)) == (0, {"ok": True})
    assert (await caller.call("create_pet", 'body={"name": "7"}'))[0] == 0
    assert (await caller.call("get_pet", "--args", '{"id": 8}'))[0] == 0

    assert [(seen.method, seen.target) for seen in upstream.seen] == [
        ("GET", "/v1/pets/7?verbose=true"),
        ("POST", "/v1/pets"),
        ("GET", "/v1/pets/8"),
    ]
    assert json.loads(upstream.seen[1].body) == {"name": "7"}


async def test_a_result_that_is_an_error_is_printed_and_ends_with_1(
    caller: Caller, upstream: RecordingUpstream
) -> None:
    """Ours: a script sees that the call failed, a person sees why (CAL-2)."""
    code, out, _ = await caller.call("get_pet", "id=seven")
    assert code == 1
    assert "id" in out
    assert upstream.seen == []

    upstream.status = 404
    code, out, _ = await caller.call("get_pet", "id=7", "--json")
    assert code == 1
    assert json.loads(out)["isError"] is True


async def test_each_refusal_of_a_call_has_its_exit_code(caller: Caller) -> None:
    """Ours: unknown tools, foreign tenants and bad keys end each in their own way (CAL-3, TEN-1)."""
    assert (await caller.call("no_such_tool"))[0] == 5
    assert (await caller.call("get_pet", "id=7", "--tenant", "other"))[0] == 5
    assert (await caller.call("get_pet", "id=7", key="mcpg_live_wrong"))[0] == 4
    assert (await caller.call("get_pet", "id=7", key=""))[0] == 4
    assert (await caller.call("get_pet", "id"))[0] == 2
    assert (await caller.call("get_pet", "--url", "http://127.0.0.1:1"))[0] == 3


async def test_a_denied_call_reports_the_denial(caller: Caller, upstream: RecordingUpstream) -> None:
    """Ours: a denied call reaches no upstream (SAF-2)."""
    await caller.terminal.do("policy", "update", "--dangerous", "deny")

    code, out, err = await caller.call("delete_pet", "id=7")

    assert code == 1
    assert "policy" in (out + err).lower()
    assert upstream.seen == []


async def test_a_call_to_confirm_asks_its_user_on_a_terminal(caller: Caller, upstream: RecordingUpstream) -> None:
    """Ours: one person at a terminal needs no second one; a script receives the remedy (SAF-2)."""
    await caller.terminal.do("policy", "update", "--moderate", "confirm")
    wanted = ("create_pet", 'body={"name": "Rex"}')

    scripted = await caller.call(*wanted)
    tried = await caller.terminal.run("tool", "try", *wanted)
    assert (scripted[0], tried.code, upstream.seen) == (1, 1, [])
    assert "the user confirms it instead" in scripted[1]
    assert "on a terminal, this command asks you" in scripted[2]
    assert "`gateway call` with a key of the tenant" in tried.err
    assert tried.out.startswith("request: POST ")

    refused = await caller.call(*wanted, typed="n\n")
    assert (refused[0], "the user declined" in refused[1], upstream.seen) == (1, True, [])
    confirmed = await caller.call(*wanted, typed="y\n")
    assert (confirmed[0], json.loads(confirmed[1])) == (0, {"ok": True})
    assert f"POST {upstream.url}/v1/pets" in confirmed[2]
    assert [seen.method for seen in upstream.seen] == ["POST"]
    assert (await caller.terminal.do("tool", "try", "get_pet", "id=7")).out.startswith("sent: GET ")


async def test_a_form_is_filled_in_on_a_terminal(caller: Caller) -> None:
    """MCP: each kind of field of a form has its way to be typed, and is asked again while it does not fit (CLI-1)."""
    colours = {"type": "array", "items": {"enum": ["red", "blue"]}, "description": "Some of them."}
    fields: dict[str, Any] = {
        "who": {"type": "string", "title": "Your name"},
        "age": {"type": "integer"},
        "size": {"oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}], "type": "string"},
        "colours": colours,
        "note": {"type": "string"},
        "price": {"type": "number", "default": 1.5},
        "sure": {"type": "boolean"},
    }
    schema = {"type": "object", "properties": fields, "required": ["who", "age", "size", "colours", "sure"]}
    ask = {"ask": {"key": "ok", "message": "Please\u001b[31m.", "schema": schema}, "as": "ok"}
    steps = [ask, {"return": {"json": "{{ ok }}"}}]
    body = tool("fill", {"kind": "steps", "steps": steps}, safety="safe")
    await caller.terminal.do("tool", "create", "-", given=json.dumps(body))

    lines = ["", "007", "seven", "7", "huge", "l", "red, green", "red, blue", "", "", "y"]
    code, out, shown = await caller.call("fill", typed="\n".join(lines) + "\n")
    assert code == 0, (out, shown)
    expected = {"who": "007", "age": 7, "size": "l", "colours": ["red", "blue"], "price": 1.5, "sure": True}
    assert json.loads(out) == {"action": "accept", "content": expected}
    for text in (
        "Please\\x1b[31m.",
        "Your name:",
        "l: large",
        "Some of them.",
        "'huge' is none of s, l",
        "price [1.5]",
    ):
        assert text in shown, shown
    cancelled = await caller.call("fill", typed="\x04")
    assert json.loads(cancelled[1])["action"] == "cancel"


async def test_old_names_and_keys_of_a_profile_can_call(caller: Caller, upstream: RecordingUpstream) -> None:
    """Ours: the command line can call whatever an MCP client can call (OVR-1, CAP-1)."""
    terminal = caller.terminal
    await terminal.do("tool", "set", "get_pet", "--rename", "fetch_pet")
    await terminal.do("profile", "create", "--name", "small", "--include-name", "fetch_*")
    bound: Any = (await terminal.do("key", "create", "small", "--profile", "small", "--json")).value

    assert (await caller.call("get_pet", "id=7"))[0] == 0
    assert (await terminal.do("tool", "try", "get_pet", "id=8")).out.startswith("sent: GET ")
    assert (await terminal.do("tool", "show", "get_pet")).out.splitlines()[0].split() == ["name", "fetch_pet"]
    code, _, err = await caller.call("fetch_pet", "id=9", key=bound["key"])
    assert (code, "--profile" in err) == (5, True)
    assert (await caller.call("fetch_pet", "id=9", "--profile", "small", key=bound["key"]))[0] == 0
    url = f"{terminal.gateway.url}/t/acme/small/mcp"
    assert (await caller.call("fetch_pet", "id=10", "--url", url, key=bound["key"]))[0] == 0
    assert (await caller.call("create_pet", "--profile", "small", key=bound["key"]))[0] == 5
    assert [seen.target for seen in upstream.seen] == [f"/v1/pets/{number}" for number in (7, 8, 9, 10)]
