"""Whether the ready lines are what the clients read."""

import json
import shlex

from gateway.cli.input.json_fields import JsonObject
from gateway.cli.output.client_lines import (
    call_line,
    claude_code_line,
    client_lines,
    curl_line,
    cursor_line,
    render_clients,
    vs_code_line,
)

_URL = "http://127.0.0.1:8080/t/try/mcp"
_KEY = "mcpg_live_abc"


def test_the_claude_code_line_is_one_command_with_the_key_in_a_header() -> None:
    """Ours: pasting the line connects the client."""
    words = shlex.split(claude_code_line("shop", _URL, _KEY))

    assert words == [
        "claude", "mcp", "add", "--transport", "http", "shop", _URL, "--header", f"Authorization: Bearer {_KEY}",
    ]  # fmt: skip


def test_the_cursor_line_is_json_on_one_line() -> None:
    """Ours: it can be pasted as the whole of mcp.json."""
    server = json.loads(cursor_line("shop", _URL, _KEY))["mcpServers"]["shop"]

    assert server == {"url": _URL, "headers": {"Authorization": f"Bearer {_KEY}"}}


def test_the_vs_code_line_survives_the_shell() -> None:
    """Ours: the JSON reaches `code` as one argument."""
    words = shlex.split(vs_code_line("o'shop", _URL, _KEY))

    assert words[:2] == ["code", "--add-mcp"]
    assert json.loads(words[2])["name"] == "o'shop"
    assert json.loads(words[2])["type"] == "http"


def test_the_curl_line_carries_everything_the_revision_demands() -> None:
    """MCP 2026-07-28: version and method in headers, version and capabilities in `_meta`, both media types accepted."""
    words = shlex.split(curl_line(_URL, _KEY))
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = json.loads(words[words.index("-d") + 1])

    assert headers["Authorization"] == f"Bearer {_KEY}"
    assert headers["Accept"] == "application/json, text/event-stream"
    assert headers["Content-Type"] == "application/json"
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == body["method"] == "tools/list"
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}


def test_every_client_has_exactly_one_line() -> None:
    """Ours: a line can be copied whole."""
    assert [name for name, _ in client_lines("shop", _URL, _KEY)] == ["Claude Code", "Cursor", "VS Code", "curl"]
    assert all("\n" not in line for _, line in client_lines("shop", _URL, _KEY))
    assert render_clients("shop", _URL, _KEY).splitlines()[1].endswith(f"Authorization: Bearer {_KEY}")


def _tool(name: str, properties: JsonObject, *, reads: bool = True) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}


def _called(tools: list[JsonObject]) -> tuple[dict[str, str], JsonObject]:
    words = shlex.split(call_line(_URL, _KEY, tools))
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

    assert call_line(_URL, _KEY, tools) == ""
    assert "a safe call" not in render_clients("shop", _URL, _KEY)
    assert render_clients("shop", _URL, _KEY, call="curl x").splitlines()[-1].split() == [
        "a",
        "safe",
        "call",
        "curl",
        "x",
    ]
