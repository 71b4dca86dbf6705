"""Limits of clients that only a report can show."""

import re
from typing import Any

import pytest

from gateway.domain.listed.client_limits import LIMITS, find_count_limits, find_limits


def test_tools_beyond_a_limit_are_named_with_the_remedy() -> None:
    """Ours: clients, the tools that they refuse, and the remedy (CLN-1)."""
    tools = [
        {"name": "n" * 52, "description": "d" * 1024},
        {"name": "n" * 53, "description": "d" * 1025},
        {"name": "x", "description": "d" * 2049},
        {"name": "y"},
    ]
    found = {(one.clients, one.names): one.sentence for one in find_limits(tools)}

    assert set(found) == {
        (("Cursor",), ("n" * 53,)),
        (("Claude Code", "Codex"), ("n" * 52, "n" * 53)),
        (("OpenAI API",), ("n" * 53, "x")),
        (("Claude Code",), ("x",)),
    }
    assert all(re.search(r"\d", sentence) and "`gateway" in sentence for sentence in found.values())
    assert find_limits([{"name": "ok", "description": "Fine."}]) == []


_TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "is_refused"),
    [
        ({"$ref": "#/$defs/a"}, True),
        ({"items": {"anyOf": [_TEXT, {"const": 1}]}}, True),
        ({"additionalProperties": {"type": ["string", "null"]}}, True),
        ({"properties": {"n": {"type": "number", "exclusiveMinimum": 0}}}, True),
        ({"allOf": [{"propertyNames": {"maxLength": 3}}]}, True),
        ({"not": {"patternProperties": {"^x": {}}}}, True),
        ({"properties": {"const": _TEXT, "$ref": _TEXT, "type": {"enum": [["a"]]}}, "items": True}, False),
        ({"enum": [{"const": 1}], "examples": [{"$ref": "x"}], "default": {"type": ["a"]}}, False),
    ],
)
def test_keywords_of_newer_dialects_name_older_clients(schema: dict[str, Any], is_refused: bool) -> None:
    """Ours: a report names the tools that Gemini clients before google-genai 3 refuse; `doctor` does not (CLN-1)."""
    other = {"name": "x", "inputSchema": {"type": "object", "properties": {"a": schema}}}
    tools: list[dict[str, Any]] = [other, {"name": "y"}]
    found = [(one.clients, one.names) for one in find_limits(tools, with_older=True)]

    assert found == ([(("older Gemini clients",), ("x",))] if is_refused else [])
    assert find_limits(tools) == []


def test_a_long_list_names_its_clients() -> None:
    """Ours: 80 tools, 128 and 512 are what clients take (CLN-1)."""
    clients = [[one.clients[0] for one in find_count_limits(number)] for number in (80, 81, 129, 513)]

    assert clients == [[], ["Cursor"], ["OpenAI API", "Cursor"], ["Gemini API", "OpenAI API", "Cursor"]]


def test_each_limit_has_a_source() -> None:
    """Ours: a thread, or the release with which it was tried (CLN-1)."""
    assert all(re.search(r"#\d+|\d+\.\d+|20\d\d", one.source) for one in LIMITS)
