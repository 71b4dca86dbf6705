"""Permitted questions to a client, and valid answers."""

from typing import Any

import pytest
from mcp_types import ClientCapabilities

from gateway.errors import CapabilityMissing, ClientSilent, HandlerFailed
from gateway.handlers.interfaces import InputRequest, InputRequestKind
from gateway.protocol.methods.input_requests import (
    check_response,
    is_valid_response,
    levels_from,
    require_capability,
    supports,
    to_wire_request,
)

KINDS = ("elicitation", "elicitation.url", "sampling", "roots")


@pytest.mark.parametrize(
    ("declared", "able"),
    [
        ({}, set[str]()),
        ({"elicitation": {}}, {"elicitation"}),
        ({"elicitation": {"form": {}}}, {"elicitation"}),
        ({"elicitation": {"url": {}}}, {"elicitation.url"}),
        ({"elicitation": {"form": {}, "url": {}}}, {"elicitation", "elicitation.url"}),
        ({"sampling": {}, "roots": {}}, {"sampling", "roots"}),
    ],
)
def test_a_client_has_its_declared_capabilities(declared: dict[str, Any], able: set[str]) -> None:
    """MCP: an empty elicitation capability is a form; nothing else is guessed (SRV-1)."""
    capabilities = ClientCapabilities.model_validate(declared, by_name=False)

    assert {kind for kind in KINDS if supports(capabilities, kind)} == able
    assert not any(supports(None, kind) for kind in KINDS)
    assert not supports(capabilities, "tasks")


def test_a_page_needs_the_mode_of_pages() -> None:
    """MCP: URL mode only where it was declared (SRV-1)."""
    page = InputRequest(kind="elicitation", params={"mode": "url", "message": "x", "url": "https://x"})
    form = InputRequest(kind="elicitation", params={"message": "x", "requestedSchema": {}})
    with pytest.raises(CapabilityMissing) as caught:
        require_capability(page, lambda kind: kind == "elicitation")
    require_capability(form, lambda kind: kind == "elicitation")

    assert caught.value.capability == "elicitation.url"


@pytest.mark.parametrize(
    ("kind", "answer", "is_one"),
    [
        ("elicitation", {"action": "accept", "content": {"a": 1}}, True),
        ("elicitation", {"action": "cancel"}, True),
        ("elicitation", {"action": "maybe"}, False),
        ("elicitation", {"roots": []}, False),
        ("elicitation", None, False),
        ("sampling", {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}, True),
        ("sampling", {"role": "assistant", "model": "m"}, False),
        ("roots", {"roots": [{"uri": "file:///x"}]}, True),
        ("roots", {"action": "accept"}, False),
        ("roots", [], False),
    ],
)
def test_an_answer_has_the_form_of_its_question(kind: InputRequestKind, answer: object, is_one: bool) -> None:
    """Ours: a handler is never handed the answer to something else (SRV-1)."""
    assert is_valid_response(kind, answer) is is_one


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1},
        "mail": {"type": "string", "format": "email"},
        "color": {"type": "string", "enum": ["red", "green"]},
    },
    "required": ["count"],
}


@pytest.mark.parametrize(
    ("answer", "pointer"),
    [
        ({"action": "accept", "content": {"count": 2, "mail": "a@example.com", "color": "red", "more": 1}}, None),
        ({"action": "accept", "content": {"count": "2"}}, "/count"),
        ({"action": "accept", "content": {"count": 0}}, "/count"),
        ({"action": "accept", "content": {"count": 1, "mail": "nobody"}}, "/mail"),
        ({"action": "accept", "content": {"count": 1, "color": "blue"}}, "/color"),
        ({"action": "accept", "content": {}}, ""),
        ({"action": "accept"}, ""),
        ({"action": "decline", "content": {"count": "2"}}, None),
        ({"action": "cancel"}, None),
    ],
)
def test_a_filled_form_matches_its_schema(answer: dict[str, Any], pointer: str | None) -> None:
    """MCP: elicited content is validated against the schema that was asked for (SRV-1)."""
    question = InputRequest(kind="elicitation", params={"message": "x", "requestedSchema": FORM})
    if pointer is None:
        check_response(question, answer)
        return
    with pytest.raises(ClientSilent) as caught:
        check_response(question, answer)
    assert [fault.pointer for fault in caught.value.faults] == [pointer]


@pytest.mark.parametrize(
    "schema", [{"type": "nothing"}, {"properties": {"a": {"pattern": "(?=x)"}}}, {"type": object()}]
)
def test_a_form_that_cannot_be_checked_is_not_shown(schema: dict[str, Any]) -> None:
    """Ours: code learns that its schema is wrong before a user fills it in (CAL-4)."""
    with pytest.raises(HandlerFailed):
        require_capability(
            InputRequest(kind="elicitation", params={"message": "x", "requestedSchema": schema}), lambda _: True
        )


def test_a_question_is_written_as_the_protocol_has_it() -> None:
    """MCP: the methods of the three requests of a server (SRV-1)."""
    assert to_wire_request(InputRequest(kind="roots", params={})) == {"method": "roots/list"}
    assert to_wire_request(InputRequest(kind="sampling", params={"maxTokens": 1})) == {
        "method": "sampling/createMessage",
        "params": {"maxTokens": 1},
    }
    assert to_wire_request(InputRequest(kind="elicitation", params={"message": "x"}))["method"] == "elicitation/create"


def test_levels_include_all_above() -> None:
    """MCP: at or above; what is no level wants nothing (SRV-1)."""
    assert tuple(levels_from("alert")) == ("alert", "emergency")
    assert len(tuple(levels_from("debug"))) == 8
    assert tuple(levels_from("loud")) == tuple(levels_from(None)) == ()
