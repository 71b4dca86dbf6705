"""Guardrails and explanations from the command line, against a running gateway."""

import json
from typing import Any

from tests.behaviour.cli.conftest import Terminal
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream

DECLARED = """
name: injection
check: prompt-injection
phases: [result]
action: mark
origins: [source]
position: 5
---
name: small
check: size
phases: [call]
action: block
max_bytes: 100
"""


async def test_guardrails_are_declared_listed_and_switched(
    terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream
) -> None:
    """Ours: by options and by file, in the order in which they run (SAF-6, CLI-1)."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    options = ("--check", "secrets", "--phase", "call", "--action", "block", "--tool", "create_*")
    await terminal.do("guardrail", "create", "--name", "secrets", *options)
    await terminal.do("guardrail", "set", "-", given=DECLARED)
    await terminal.do("guardrail", "set", "-", given=DECLARED)
    listed: Any = (await terminal.do("guardrail", "list", "--json")).value
    assert [one["name"] for one in listed] == ["injection", "secrets", "small"]
    assert listed[1]["scope"]["names"] == ["create_*"]

    await terminal.do("guardrail", "update", "small", "--disable", "--position", "1")
    shown = (await terminal.do("guardrail", "list")).out.splitlines()
    assert shown[1].split()[0] == "small"
    assert "no" in (await terminal.do("guardrail", "show", "small")).out
    await terminal.do("guardrail", "delete", "small", "--yes")
    refused = await terminal.run("guardrail", "create", "--name", "x", "--check", "http", "--phase", "call")
    assert refused.code != 0


async def test_a_call_is_explained(terminal: Terminal, gateway: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: `explain` has the arguments of `call`, sends nothing, and fails if the call would (SAF-5, CLI-1)."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    options = ("--check", "secrets", "--phase", "call", "--action", "block")
    await terminal.do("guardrail", "create", "--name", "secrets", *options)

    good = await terminal.do("explain", "get_pet", "id=7")
    assert f"GET {upstream.url}/v1/pets/7" in good.out
    assert "secrets (secrets, block): finds nothing" in good.out
    bad = await terminal.run("explain", "create_pet", "--args", json.dumps({"body": {"name": "AKIA" + "I" * 16}}))
    assert (bad.code != 0, "policy.call_blocked" in bad.out) == (True, True)
    invalid = await terminal.run("explain", "get_pet", "id=x")
    assert "call.arguments_invalid" in invalid.out
    missing = await terminal.run("explain", "nothing")
    assert (missing.code != 0, "no such tool" in missing.err) == (True, True)
    assert upstream.seen == []
