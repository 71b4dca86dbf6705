"""Requests as text: nothing hidden, nothing endless."""

import pytest

from gateway.domain.calls.approvals import RequestShown
from gateway.web.console.limits import MAX_COMPARED
from gateway.web.console.request_text import compare_lines, request_lines, show_lines


def test_json_is_indented_without_changing_a_token() -> None:
    """Ours: repeated members, digits and escapes are what is sent (SAF-3)."""
    body = '{"a":1e400,"a":[1.0,"\\u202e"],"n":123456789012345678901234567890}'
    lines = request_lines(RequestShown(method="POST", url="https://x.example", headers=(("A", "b"),), body=body))

    assert lines[:4] == ["POST https://x.example", "A: b", "", "{"]
    assert "".join(line.strip() for line in lines[3:]).replace(" ", "") == body


@pytest.mark.parametrize("body", ["no json", "[" * 100_000, '{"a":', "é\u202e", "\ud800", ""])
def test_any_other_body_is_shown_as_it_is(body: str) -> None:
    """Ours: with what is unprintable escaped (SAF-3)."""
    shown = show_lines(request_lines(RequestShown(method="POST", url="u", body=body)))
    assert len(shown) < 70_000
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_call_without_a_request_is_its_tool_and_arguments() -> None:
    """Ours: the URL is the tool's name then (SAF-3)."""
    assert request_lines(RequestShown(method="", url="tool", body="{}")) == ["tool", "", "{}"]


def test_a_difference_beyond_the_cut_is_a_difference() -> None:
    """Ours: lines are compared whole, whatever is shown of them (SAF-3)."""
    compared = compare_lines(["x" * 5000 + "a"], ["x" * 5000 + "b"])
    assert compared is not None
    assert [sign for sign, _ in compared] == ["@", "-", "+"]
    assert compare_lines(["a"], ["a"]) == []
    assert compare_lines(["a"] * (MAX_COMPARED + 1), ["a"]) is None
