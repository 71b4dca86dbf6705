"""Answers that a client of 2026-07-28 brings before it was asked (`inputResponses` without `requestState`)."""

from typing import Any

import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, META, MODERN
from tests.support.primitives import add, tool

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ADA = {"action": "accept", "content": {"name": "Ada"}}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
GREET = [
    {"ask": {"key": "user_name", "message": "What is your name?", "schema": FORM}, "as": "answer"},
    {"return": {"text": "Hello, {{ answer.content.name }}!"}},
]


@pytest.fixture
async def greeting(acme: Acme) -> Acme:
    """A tenant with a tool that asks, and one that calls it."""
    outer = [{"call": {"tool": "greet"}, "as": "said"}, {"return": {"text": "{{ said.content[0].text }}"}}]
    for name, steps in (("greet", GREET), ("outer", outer)):
        await add(acme.gateway, acme.slug, "tools", tool(name, {"kind": "steps", "steps": steps}, safety="safe"))
    return acme


async def _call(
    acme: Acme, name: str, answers: Any, *, state: str | None = None, **capabilities: Any
) -> dict[str, Any]:
    meta = {**META, CAPABILITIES: capabilities}
    params = {"name": name, "arguments": {}, "inputResponses": answers, "_meta": meta}
    if state is not None:
        params["requestState"] = state
    headers = {"authorization": f"Bearer {acme.key}", "accept": ACCEPT, "mcp-protocol-version": MODERN}
    headers |= {"mcp-method": "tools/call", "mcp-name": name}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer: dict[str, Any] = (await acme.gateway.http.post(f"/t/{acme.slug}/mcp", json=body, headers=headers)).json()
    return answer


async def test_a_given_answer_is_not_asked_for(greeting: Acme) -> None:
    """MCP: a client that knows the question may send its answer; unrequested keys have no effect (SRV-5)."""
    answer = await _call(greeting, "greet", {"user_name": ADA, "else": ADA}, elicitation={})

    assert answer["result"]["content"][0]["text"] == "Hello, Ada!"


@pytest.mark.parametrize(
    "reported",
    [{"roots": []}, {"action": "perhaps"}, {"action": "accept"}, {"action": "accept", "content": {"name": 7}}],
)
async def test_a_foreign_answer_is_not_taken_for_the_question(greeting: Acme, reported: dict[str, Any]) -> None:
    """Ours: a handler never sees something else than what it asks for (SRV-1)."""
    answer = await _call(greeting, "greet", {"user_name": reported}, elicitation={})

    refused = answer.get("error", {}).get("code") == -32602
    assert refused or answer["result"]["resultType"] == "input_required"


async def test_a_client_cannot_answer_undeclared_questions(greeting: Acme) -> None:
    """MCP: only declared capabilities are used (SRV-1)."""
    answer = await _call(greeting, "greet", {"user_name": ADA})

    assert answer["error"]["code"] == -32021


async def test_a_nested_call_always_asks_its_own_question(greeting: Acme) -> None:
    """Ours: an answer counts for the handler that the client called, never for what is called on its behalf (TEN-5)."""
    answer = await _call(greeting, "outer", {"user_name": ADA}, elicitation={})

    assert answer["result"]["resultType"] == "input_required"
    (key,) = answer["result"]["inputRequests"]
    again = await _call(greeting, "outer", {key: ADA}, elicitation={})
    assert again["result"]["resultType"] == "input_required"


async def test_a_malformed_answer_uses_no_state_up(greeting: Acme) -> None:
    """MCP: a malformed answer is an error; ours: the client may come again with a good one, and once only (SRV-1)."""
    asked = (await _call(greeting, "greet", {}, elicitation={}))["result"]
    state: str = asked["requestState"]
    (key,) = asked["inputRequests"]

    malformed = await _call(greeting, "greet", {key: {"action": "perhaps"}}, state=state, elicitation={})
    good = await _call(greeting, "greet", {key: ADA}, state=state, elicitation={})
    again = await _call(greeting, "greet", {key: ADA}, state=state, elicitation={})

    assert (malformed["error"]["code"], again["error"]["code"]) == (-32602, -32602)
    assert good["result"]["content"][0]["text"] == "Hello, Ada!"
