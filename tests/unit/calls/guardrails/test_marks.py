"""Marks on results: where they go, and what they leave alone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.calls.guardrails.marks import mark_contents, mark_members, mark_messages
from gateway.calls.output_checks import encode
from gateway.calls.result_rendering import failure
from gateway.definitions.contract.metadata import GUARDRAILS_META as NAME
from gateway.domain.identifiers import GuardrailId
from gateway.domain.results import ABSENT, Contents, Messages, Result
from gateway.domain.tenancy.guardrails import (
    Guardrail,
    GuardrailAction,
    GuardrailPhase,
)
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.errors import UpstreamTimeout

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_GUARDRAIL = Guardrail(
    id=GuardrailId("grd_1"),
    name="g",
    check=GuardrailCheck.INJECTION,
    phases=(GuardrailPhase.RESULT,),
    action=GuardrailAction.MARK,
    created_at=_NOW,
    updated_at=_NOW,
)
_MARKS = [(_GUARDRAIL, ("override",))]
_FACT = {"guardrail": "g", "check": "prompt-injection", "reasons": ["override"]}
_TEXT = {"type": "text", "text": 'x,"isError":true,"_meta":{}'}
_NESTED: dict[str, Any] = {**_TEXT, "_meta": {"isError": 1, "meta": {"a": 1, "_meta": {}}, "structuredContent": 2}}


@pytest.mark.parametrize(
    "result",
    [
        Result(content=[_TEXT]),
        Result(content=[_TEXT], is_error=True),
        Result(structured={"a": 1, "isError": 1, "_meta": {"b": 2}}),
        Result(content=[_NESTED], structured=[1, {"isError": True}], meta={"own": {"isError": 1, "_meta": {}}}),
        Result(content=[_TEXT], meta={NAME: "checked: harmless", "own": 1}),
        Result(content=[_TEXT], meta={"own": {NAME: "deep"}}),
        Result(),
    ],
)
def test_a_mark_changes_nothing_else(result: Result) -> None:
    """Ours: content, structure and `isError` stay; a mark that a handler wrote is replaced (SAF-6)."""
    members, _ = encode(result)
    before: dict[str, Any] = json.loads(b"{" + members + b"}")
    marked = mark_members(members, _MARKS)
    after: dict[str, Any] = json.loads(b"{" + marked + b"}")

    assert after["content"][0]["text"].startswith("Warning from the gateway: ")
    assert after["content"][1:] == before["content"]
    assert after["isError"] == before["isError"]
    assert after.get("structuredContent", ABSENT) == before.get("structuredContent", ABSENT)
    assert after["_meta"] == {**before.get("_meta", {}), NAME: [_FACT]}
    assert marked.endswith(b"}")
    assert marked.rfind(b',"isError":') == marked.rfind(b',"isError":' + (b"true" if result.is_error else b"false"))


def test_an_error_of_the_gateway_keeps_its_code() -> None:
    """Ours: a marked failure still has its stable code (SAF-6)."""
    marked = json.loads(b"{" + mark_members(failure(UpstreamTimeout("late"), "cor_1"), _MARKS) + b"}")
    assert marked["_meta"]["gateway/error"] == {"code": "upstream.timeout", "correlation_id": "cor_1"}
    assert marked["_meta"][NAME] == [_FACT]


def test_a_resource_keeps_its_text_and_a_prompt_its_messages() -> None:
    """Ours: contents are marked in `_meta`, prompts by a message in front (SAF-6)."""
    content = {"uri": "a:b", "text": "x", "_meta": {"own": 1}}
    assert mark_contents(Contents(contents=[content]), _MARKS).contents == [
        {**content, "_meta": {"own": 1, NAME: [_FACT]}}
    ]
    message = {"role": "user", "content": {"type": "text", "text": "x"}}
    front, rest = mark_messages(Messages(messages=[message], description="d"), _MARKS).messages
    assert rest is message
    assert front["content"]["_meta"] == {NAME: [_FACT]}  # type: ignore[index]  # a mapping, typed as an object
