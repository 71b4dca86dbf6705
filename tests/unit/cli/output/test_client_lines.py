"""Ready lines have the form that the clients read."""

import json
import shlex

from gateway.cli.input.json_fields import JsonObject
from gateway.cli.output.client_lines import call_line, render_clients
from gateway.domain.tenancy.client_setup import ClientTarget

_TARGET = ClientTarget(name="shop", url="http://127.0.0.1:8080/t/try/mcp", key="mcpg_live_abc")


def _tool(name: str, properties: JsonObject, *, reads: bool = True) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}


def _called(tools: list[JsonObject]) -> tuple[dict[str, str], JsonObject]:
    words = shlex.split(call_line(_TARGET, tools))
    body: JsonObject = json.loads(words[words.index("-d") + 1])["params"]
    return dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"), body


def test_a_safe_call_that_requires_nothing_is_offered_first() -> None:
    """Ours: beside the list there is a line that calls a tool which only reads (SRV-1)."""
    headers, params = _called(
        [_tool("put", {}, reads=False), _tool("get", {"id": {"type": "integer"}}), _tool("all", {})]
    )

    assert (params["name"], params["arguments"]) == ("all", {})
    assert (headers["Mcp-Method"], headers["Mcp-Name"]) == ("tools/call", "all")


def test_required_arguments_have_values_of_the_document() -> None:
    """Ours: an example of the document is better than a made-up value; mirrored arguments are headers too (SRV-1)."""
    inner: JsonObject = {
        "id": {"type": "integer", "examples": [7]},
        "kind": {"enum": ["cat", "dog"]},
        "region": {"type": "string", "x-mcp-header": "Region", "default": "o'eu"},
        "q": {"type": "string"},
    }
    headers, params = _called([_tool("find", inner)])

    assert params["arguments"] == {"id": 7, "kind": "cat", "region": "o'eu", "q": "example"}
    assert headers["Mcp-Param-Region"] == "o'eu"


def test_no_call_is_offered_where_none_is_safe_and_clear() -> None:
    """Ours: a tool that changes data or needs an unknown object is not offered (SAF-1)."""
    bare: JsonObject = {"name": "bare"}
    tools = [_tool("put", {}, reads=False), _tool("get", {"filter": {"$ref": "#/$defs/F"}}), bare]

    assert call_line(_TARGET, tools) == ""
    assert "a safe call" not in str(render_clients(_TARGET))
    assert str(render_clients(_TARGET, call="curl x")).splitlines()[-1].split() == [
        "a",
        "safe",
        "call",
        "curl",
        "x",
    ]
