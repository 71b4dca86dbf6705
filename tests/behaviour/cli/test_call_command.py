"""Calls from the command line, through MCP and to the upstream."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.upstream import RecordingUpstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A prompt with a tenant's key in its environment, as an agent's developer has it."""

    terminal: Terminal
    key: str

    async def call(self, *arguments: str, key: str | None = None) -> tuple[int, str, str]:
        """Exit code, output and errors of `gateway call`."""
        wanted = self.key if key is None else key
        ended = await self.terminal.run("call", *arguments, GATEWAY_KEY=wanted, GATEWAY_OPERATOR_KEY="")
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


async def test_a_call_the_policy_denies_says_so(caller: Caller, upstream: RecordingUpstream) -> None:
    """Ours: a denied call reaches no upstream (SAF-2)."""
    await caller.terminal.do("policy", "set", "--dangerous", "deny")

    code, out, err = await caller.call("delete_pet", "id=7")

    assert code == 1
    assert "policy" in (out + err).lower()
    assert upstream.seen == []
