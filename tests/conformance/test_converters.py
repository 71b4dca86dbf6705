"""The converters of SDKs and model APIs, with every listed tool of the shared documents, and with odd definitions."""

import gzip
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.listed.definition import listed_definition, written
from gateway.domain.listed.names import ListedNames
from gateway.openapi.compiler import compile_document
from tests.conformance.environments import find_python
from tests.support.real_documents import OPTIONS
from tests.support.specs import all_specs, load_spec, specs_dir

_SCRIPT = Path(__file__).with_name("converters.py")
_PATIENCE_S = 600
_OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
ODD: dict[str, dict[str, Any]] = {
    "look": {**_OBJECT, "properties": {"url": {}}, "oneOf": [{"required": ["url"]}, {"required": ["data"]}]},
    "arr": {**_OBJECT, "properties": {"ids": {"type": "array"}, "pair": {"type": "array", "items": [{}, False]}}},
    "email": {**_OBJECT, "properties": {"to": {"type": "string", "pattern": "^(?!\\.)(?!.*\\.\\.)a@b$"}}},
    "k": {**_OBJECT, "properties": {"k[]": {}, "会社": True, "no": False}, "additionalProperties": False},
    "older": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_OBJECT,
        "properties": {"a": {"$ref": "#/definitions/A"}, "b": {"$ref": "#"}},
        "definitions": {"A": {"type": "object", "additionalProperties": True, "dependencies": {"x": ["y"]}}},
    },
    "examples": {**_OBJECT, "properties": {"a": {"examples": [{"$ref": "http://example.com/x.json"}], "enum": [1]}}},
}


@pytest.mark.long
def test_every_converter_takes_every_listed_tool() -> None:
    """Ours: google-genai, openai-agents, anthropic, langchain and litellm, 0 failures (CLN-1)."""
    python = find_python("converters")
    tools = [*_tools_of_documents(), *_odd_tools()]
    lines = b"\n".join(map(written, tools))
    ended = subprocess.run([python, _SCRIPT], input=lines, capture_output=True, timeout=_PATIENCE_S, check=False)
    assert ended.returncode == 0, ended.stderr.decode()[-2000:]
    found = json.loads(ended.stdout.splitlines()[-1])

    assert found["read"] == len(tools) > 6000
    assert {name: one["first"] for name, one in found["failures"].items() if one["count"]} == {}


def _tools_of_documents() -> Iterator[dict[str, Any]]:
    """The tools of every shared document as clients receive them."""
    more = sorted((specs_dir().parent / "look-3" / "documents").glob("*.gz"))
    raw = [*map(load_spec, all_specs()), *(gzip.decompress(path.read_bytes()) for path in more)]
    for document in raw:
        made = [json.loads(operation.definition) for operation in compile_document(document, OPTIONS).operations]
        names = ListedNames(tool["name"] for tool in made)
        yield from (listed_definition(tool, names.listed(tool["name"])) for tool in made)


def _odd_tools() -> Iterator[dict[str, Any]]:
    for name, schema in ODD.items():
        yield listed_definition({"name": name, "description": "Odd.", "inputSchema": schema}, name)
