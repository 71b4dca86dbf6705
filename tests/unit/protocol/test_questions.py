"""What may be asked of a client, and what counts as an answer."""

from typing import Any

import pytest
from mcp_types import ClientCapabilities

from gateway.errors import CapabilityMissing
from gateway.handlers.port import Question, QuestionKind
from gateway.protocol.questions import declares, is_answer, need, request_of, wanted_levels

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
def test_a_client_can_what_it_declared(declared: dict[str, Any], able: set[str]) -> None:
    """MCP: an empty elicitation capability is a form; nothing else is guessed (SRV-1)."""
    capabilities = ClientCapabilities.model_validate(declared, by_name=False)

    assert {kind for kind in KINDS if declares(capabilities, kind)} == able
    assert not any(declares(None, kind) for kind in KINDS)
    assert not declares(capabilities, "tasks")


def test_a_page_needs_the_mode_of_pages() -> None:
    """MCP: URL mode only where it was declared (SRV-1)."""
    page = Question(kind="elicitation", params={"mode": "url", "message": "x", "url": "https://x"})
    form = Question(kind="elicitation", params={"message": "x", "requestedSchema": {}})
    with pytest.raises(CapabilityMissing) as caught:
        need(page, lambda kind: kind == "elicitation")
    need(form, lambda kind: kind == "elicitation")

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
def test_an_answer_has_the_form_of_its_question(kind: QuestionKind, answer: object, is_one: bool) -> None:
    """Ours: a handler is never handed the answer to something else (SRV-1)."""
    assert is_answer(kind, answer) is is_one


def test_a_question_is_written_as_the_protocol_has_it() -> None:
    """MCP: the methods of the three requests of a server (SRV-1)."""
    assert request_of(Question(kind="roots", params={})) == {"method": "roots/list"}
    assert request_of(Question(kind="sampling", params={"maxTokens": 1})) == {
        "method": "sampling/createMessage",
        "params": {"maxTokens": 1},
    }
    assert request_of(Question(kind="elicitation", params={"message": "x"}))["method"] == "elicitation/create"


def test_levels_are_wanted_from_the_least_one_on() -> None:
    """MCP: at or above; what is no level wants nothing (SRV-1)."""
    assert tuple(wanted_levels("alert")) == ("alert", "emergency")
    assert len(tuple(wanted_levels("debug"))) == 8
    assert tuple(wanted_levels("loud")) == tuple(wanted_levels(None)) == ()
