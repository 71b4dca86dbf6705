"""The published schemas agree with the validators."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gateway.definitions.contract.prompts import validate_prompt_definition
from gateway.definitions.contract.resources import validate_resource_definition, validate_resource_template_definition
from gateway.definitions.contract.tools import validate_tool_definition
from gateway.definitions.handlers.parser import parse_handler
from gateway.definitions.json_schema.dialects import DEFAULT
from gateway.definitions.live.settings import validate_settings
from gateway.definitions.published.index import NAMES, schema_of
from gateway.domain.live_sources import LiveKind
from gateway.domain.primitives import Family
from gateway.errors import DefinitionInvalid

PLAIN: dict[str, Any] = {"type": "object", "properties": {}}
TOOL: dict[str, Any] = {"name": "t", "description": "d", "inputSchema": PLAIN}
RESOURCE = {"uri": "a:b", "name": "n"}
TEMPLATE = {"uriTemplate": "a:{b}", "name": "n"}
TEXT = {"type": "text", "text": "a"}
MESSAGE = {"role": "user", "content": TEXT}
STATIC: dict[str, Any] = {"kind": "static", "content": []}
HTTP = {"kind": "http", "method": "POST", "url": "https://h/{{ x }}"}
OPENAPI = {"kind": "openapi", "source": "s", "operation": "o"}


def _tools(raw: object) -> object:
    return parse_handler(raw, Family.TOOL)


VALIDATORS: dict[str, Callable[[object], object]] = {
    "tool": validate_tool_definition,
    "resource": validate_resource_definition,
    "resource_template": validate_resource_template_definition,
    "prompt": validate_prompt_definition,
    **dict.fromkeys(("static", "template", "http", "steps", "openapi"), _tools),
    **{f"live_source_{kind.value}": partial(validate_settings, kind) for kind in LiveKind},
}

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("live_source_mcp", {"url": "https://h/mcp"}),
    ("live_source_mcp", {"url": "http://h", "transport": "sse", "headers": {"X-A": ""}, "timeout_s": 1.5}),
    ("live_source_neovim", {"address": "unix:/run/nvim.sock"}),
    ("live_source_neovim", {"address": "tcp:[::1]:1", "timeout_s": 300}),
    ("live_source_agent", {}),
    ("live_source_command", {"argv": ["server", ""], "env": {"A_1": "x"}}),
    ("tool", TOOL),
    ("tool", TOOL | {"title": "t", "outputSchema": {}, "annotations": {"title": "a", "readOnlyHint": True}}),
    ("tool", TOOL | {"icons": [{"src": "https://h/i", "sizes": ["any", "4x4"], "theme": "dark"}], "_meta": {"a/b": 1}}),
    ("resource", RESOURCE),
    ("resource", RESOURCE | {"size": 0, "mimeType": "a/b", "annotations": {"priority": 1, "audience": ["user"]}}),
    ("resource_template", TEMPLATE),
    ("resource_template", TEMPLATE | {"annotations": {"lastModified": "2030-01-31"}}),
    ("prompt", {"name": "p"}),
    ("prompt", {"name": "p", "arguments": [{"name": "a", "required": True, "title": "t", "description": "d"}]}),
    ("static", STATIC),
    ("static", {"kind": "static", "content": [TEXT], "isError": True, "structuredContent": 5}),
    ("static", {"kind": "static", "content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}),
    ("static", {"kind": "static", "content": [{"type": "resource_link", "uri": "a:b", "name": "n", "size": 1}]}),
    ("static", {"kind": "static", "content": [{"type": "resource", "resource": {"uri": "a:b", "blob": ""}}]}),
    ("template", {"kind": "template", "text": ""}),
    ("template", {"kind": "template", "json": {"a": "{{ b }}"}, "isError": False}),
    ("template", {"kind": "template", "content": [TEXT]}),
    ("http", HTTP),
    ("http", HTTP | {"headers": {"X": "{{ y }}"}, "body": [1], "credential": "c", "timeout_s": 1}),
    ("http", HTTP | {"result": {"pointer": "", "keep": ["/a/*"], "drop": ["/~0"]}}),
    ("openapi", OPENAPI),
    ("openapi", OPENAPI | {"arguments": {"a": 1}}),
    ("steps", {"kind": "steps", "steps": [{"sleep": 1}]}),
    (
        "steps",
        {
            "kind": "steps",
            "steps": [
                {"progress": 1},
                {"progress": {"progress": "{{ a }}", "total": 5, "message": "m"}},
                {"log": "a"},
                {"log": {"data": {}, "level": "info", "logger": "l"}},
                {"ask": {"message": "m", "schema": PLAIN, "key": "k"}, "as": "a"},
                {"ask": {"message": "m", "url": "https://h/"}},
                {"sample": {"messages": "a", "maxTokens": 5, "systemPrompt": "s", "temperature": 1}, "as": "b"},
                {"roots": {}},
                {"gather": [{"roots": {}, "as": "c"}]},
                {"call": {"tool": "t", "arguments": {}}, "as": "d"},
                {"http": {"method": "GET", "url": "https://h"}, "as": "e"},
                {"if": {"when": "a", "then": [{"sleep": 1}], "else": [{"return": {"text": "a"}}]}},
            ],
        },
    ),
]

BAD: list[tuple[str, object]] = [
    ("live_source_mcp", {}),
    ("live_source_mcp", {"url": " "}),
    ("live_source_mcp", {"url": "https://h", "transport": "stdio"}),
    ("live_source_mcp", {"url": "https://h", "headers": {"a b": "x"}}),
    ("live_source_mcp", {"url": "https://h", "timeout_s": 301}),
    ("live_source_neovim", {"address": "unix:relative"}),
    ("live_source_neovim", {"address": "tcp:h"}),
    ("live_source_agent", {"url": "https://h"}),
    ("live_source_command", {"argv": []}),
    ("live_source_command", {"argv": ["a"], "env": {"1": "x"}}),
    ("tool", {}),
    ("tool", TOOL | {"name": "a b"}),
    ("tool", TOOL | {"name": "x" * 65}),
    ("tool", TOOL | {"description": " "}),
    ("tool", TOOL | {"title": None}),
    ("tool", TOOL | {"inputSchema": {"type": "object"}}),
    ("tool", TOOL | {"inputSchema": {"type": "array", "properties": {}}}),
    ("tool", TOOL | {"outputSchema": True}),
    ("tool", TOOL | {"annotations": {"readOnlyHint": "yes"}}),
    ("tool", TOOL | {"annotations": {"x": 1}}),
    ("tool", TOOL | {"icons": [{"src": "http://h/i"}]}),
    ("tool", TOOL | {"icons": [{}]}),
    ("tool", TOOL | {"icons": [{"src": "data:image/svg+xml;base64,AAAA"}]}),
    ("tool", TOOL | {"_meta": {"a b": 1}}),
    ("tool", TOOL | {"x": 1}),
    ("resource", {"name": "n"}),
    ("resource", RESOURCE | {"uri": "relative"}),
    ("resource", RESOURCE | {"uri": "a:b c"}),
    ("resource", RESOURCE | {"size": -1}),
    ("resource", RESOURCE | {"mimeType": "text"}),
    ("resource", RESOURCE | {"annotations": {"priority": 2}}),
    ("resource", RESOURCE | {"annotations": {"audience": ["system"]}}),
    ("resource", RESOURCE | {"uriTemplate": "a:{b}"}),
    ("resource_template", RESOURCE),
    ("resource_template", TEMPLATE | {"uriTemplate": "a:b"}),
    ("resource_template", TEMPLATE | {"uriTemplate": "{a}"}),
    ("resource_template", TEMPLATE | {"size": 1}),
    ("prompt", {}),
    ("prompt", {"name": ""}),
    ("prompt", {"name": "p", "arguments": {}}),
    ("prompt", {"name": "p", "arguments": [{}]}),
    ("prompt", {"name": "p", "arguments": [{"name": "a", "type": "string"}]}),
    ("static", {"kind": "static"}),
    ("static", {"kind": "other", "content": []}),
    ("static", {"kind": "static", "content": [{"type": "video"}]}),
    ("static", {"kind": "static", "content": [{"type": "text"}]}),
    ("static", {"kind": "static", "content": [{"type": "image", "data": "AAAA", "mimeType": "audio/wav"}]}),
    ("static", {"kind": "static", "content": [{"type": "resource", "resource": {"text": ""}}]}),
    ("static", {"kind": "static", "content": [], "messages": []}),
    ("static", STATIC | {"isError": 1}),
    ("static", STATIC | {"x": 1}),
    ("template", {"kind": "template"}),
    ("template", {"kind": "template", "text": "a", "json": 1}),
    ("template", {"kind": "template", "text": 5}),
    ("template", {"kind": "template", "content": {}}),
    ("http", {"kind": "http", "url": "https://h"}),
    ("http", {"kind": "http", "method": "POST"}),
    ("http", HTTP | {"method": "TRACE"}),
    ("http", HTTP | {"url": "ftp://h"}),
    ("http", HTTP | {"url": "https://{{ h }}/"}),
    ("http", HTTP | {"url": "https://u@h/"}),
    ("http", HTTP | {"headers": {"X": 1}}),
    ("http", HTTP | {"timeout_s": 3601}),
    ("http", HTTP | {"result": {"pointer": "a"}}),
    ("http", HTTP | {"result": {"keep": [""]}}),
    ("http", HTTP | {"result": {"x": 1}}),
    ("openapi", {"kind": "openapi", "source": "s"}),
    ("openapi", OPENAPI | {"arguments": []}),
    ("steps", {"kind": "steps"}),
    ("steps", {"kind": "steps", "steps": []}),
    ("steps", {"kind": "steps", "steps": [{}]}),
    ("steps", {"kind": "steps", "steps": [{"sleep": 1, "log": "a"}]}),
    ("steps", {"kind": "steps", "steps": [{"sleep": 1, "as": "a"}]}),
    ("steps", {"kind": "steps", "steps": [{"sleep": 99}]}),
    ("steps", {"kind": "steps", "steps": [{"roots": {}, "as": "a b"}]}),
    ("steps", {"kind": "steps", "steps": [{"ask": {}}]}),
    ("steps", {"kind": "steps", "steps": [{"sample": {"messages": "a"}}]}),
    ("steps", {"kind": "steps", "steps": [{"gather": [{"sleep": 1}]}]}),
    ("steps", {"kind": "steps", "steps": [{"call": {}}]}),
    ("steps", {"kind": "steps", "steps": [{"http": {"method": "GET"}}]}),
    ("steps", {"kind": "steps", "steps": [{"if": {"when": "a"}}]}),
    ("steps", {"kind": "steps", "steps": [{"if": {"when": "a", "then": [{"run": 1}]}}]}),
    ("steps", {"kind": "steps", "steps": [{"return": {}}]}),
    ("steps", {"kind": "steps", "steps": [{"log": "a"}] * 101}),
]


def _name(value: object) -> str:
    return json.dumps(value)[:60] if not isinstance(value, str) else value


def test_there_is_a_schema_for_each_definition_and_kind() -> None:
    """Ours: editors and generators can use them; each is whole in itself (PRG-3)."""
    assert NAMES == (
        "tool",
        "resource",
        "resource_template",
        "prompt",
        "static",
        "template",
        "http",
        "steps",
        "openapi",
        "live_source_mcp",
        "live_source_neovim",
        "live_source_agent",
        "live_source_command",
    )
    assert schema_of("python") is None
    for name in NAMES:
        schema = schema_of(name)
        assert schema is not None
        assert DEFAULT.compile(schema) is not None
        assert json.loads(json.dumps(schema)) == schema


def test_a_schema_is_handed_out_as_a_copy() -> None:
    """Ours: a caller cannot change the copy of another."""
    first: Any = schema_of("tool")
    first["properties"].clear()

    second = schema_of("tool")
    assert second is not None
    assert second["properties"]


@pytest.mark.parametrize(("name", "raw"), GOOD, ids=_name)
def test_the_schema_accepts_all_that_the_validator_accepts(name: str, raw: dict[str, Any]) -> None:
    """Ours: the schema refuses nothing that is valid (PRG-3)."""
    VALIDATORS[name](raw)

    assert DEFAULT.compile(schema_of(name) or {}).is_valid(raw)


@pytest.mark.parametrize(("name", "raw"), BAD, ids=_name)
def test_the_validator_refuses_all_that_the_schema_refuses(name: str, raw: object) -> None:
    """Ours: and what breaks the form is refused by both (PRG-3)."""
    with pytest.raises(DefinitionInvalid):
        VALIDATORS[name](raw)

    assert not DEFAULT.compile(schema_of(name) or {}).is_valid(raw)


@pytest.mark.parametrize(
    ("name", "raw", "family"),
    [
        ("static", {"kind": "static", "contents": [{"text": "a"}, {"blob": "AA==", "uri": "a:b"}]}, Family.RESOURCE),
        ("static", {"kind": "static", "messages": [MESSAGE]}, Family.PROMPT),
        (
            "static",
            {
                "kind": "static",
                "messages": [{"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b"}}}],
                "completions": {"a": {"values": ["x"]}, "b": {"http": {"url": "https://h/?q={{ value }}"}}},
            },
            Family.PROMPT,
        ),
        ("template", {"kind": "template", "contents": [], "mimeType": "a/b"}, Family.TEMPLATE),
        ("template", {"kind": "template", "messages": []}, Family.PROMPT),
    ],
)
def test_the_schemas_hold_for_every_family(name: str, raw: object, family: Family) -> None:
    """Ours: one schema per kind serves tools, resources and prompts."""
    parse_handler(raw, family)

    assert DEFAULT.compile(schema_of(name) or {}).is_valid(raw)
