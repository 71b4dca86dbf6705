"""Configuration lines for known MCP clients, ready to paste."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from gateway.cli.client.mcp_endpoint import mirrored_headers
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object
from gateway.cli.output.limits import MAX_SEARCHED_TOOLS
from gateway.cli.output.printing import Shown
from gateway.cli.output.tables import render_pairs
from gateway.domain.http.mcp_requests import request_body, request_headers
from gateway.domain.tenancy.client_setup import ClientTarget, client_lines, curl_line

_SAMPLES: Mapping[str, object] = {"string": "example", "integer": 1, "number": 1, "boolean": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCommand:
    """A command that speaks MCP on its standard streams, with its environment variables."""

    command: str
    arguments: Sequence[str]
    variables: Mapping[str, str]

    @property
    def fields(self) -> JsonObject:
        """The JSON members that most clients use for a server on standard streams."""
        return {"command": self.command, "args": list(self.arguments), "env": dict(self.variables)}


def stdio_lines(name: str, local: LocalCommand) -> Sequence[tuple[str, str]]:
    """Return each client's name with the line that configures a server on standard streams."""
    servers = json.dumps({"mcpServers": {name: local.fields}})
    server = json.dumps({"name": name, "type": "stdio", **local.fields})
    variables = [text for each in local.variables.items() for text in ("--env", "=".join(each))]
    run = [local.command, *local.arguments]
    return (
        ("Claude Desktop", servers),
        ("Cursor", servers),
        ("VS Code", shlex.join(["code", "--add-mcp", server])),
        ("Zed", json.dumps({"context_servers": {name: {"source": "custom", **local.fields}}})),
        ("Codex", shlex.join(["codex", "mcp", "add", name, *variables, "--", *run])),
        ("Claude Code", shlex.join(["claude", "mcp", "add", name, *variables, "--", *run])),
    )


def call_line(target: ClientTarget, tools: Iterable[JsonObject]) -> str:
    """Return a shell command that calls a read-only tool; empty if no tool is safe to call with sample arguments."""
    found = _choose_call(islice(tools, MAX_SEARCHED_TOOLS))
    if found is None:
        return ""
    tool, arguments = found
    name = text_at(tool, "name")
    mirrored = mirrored_headers(tool.get("inputSchema"), arguments)
    headers = {**target.headers, **request_headers("tools/call", name=name), **mirrored}
    return curl_line(target.url, headers, request_body("tools/call", {"name": name, "arguments": arguments}))


def render_clients(target: ClientTarget, *, call: str = "") -> Shown:
    """Render the lines of all clients: URL and headers first; the example call, if any, last."""
    pairs = [("MCP URL", target.url), *(("header", f"{name}: {value}") for name, value in target.headers.items())]
    return render_pairs([*pairs, *client_lines(target), ("a safe call", call)])


def _choose_call(tools: Iterable[JsonObject]) -> tuple[JsonObject, JsonObject] | None:
    """Return the first read-only tool without required arguments; else the read-only tool with the fewest."""
    best: tuple[JsonObject, JsonObject] | None = None
    for tool in tools:
        arguments = _sample_arguments(to_object(tool.get("inputSchema")))
        if arguments is None or pick(tool, "annotations", "readOnlyHint") is not True:
            continue
        if not arguments:
            return tool, arguments
        if best is None or len(arguments) < len(best[1]):
            best = tool, arguments
    return best


def _sample_arguments(schema: JsonObject) -> JsonObject | None:
    """Return a value for each required argument, preferably from the schema; None if one has no example value."""
    arguments: JsonObject = {}
    for name in to_list(schema.get("required")):
        inner = to_object(pick(schema, "properties", as_text(name)))
        given = [inner[keyword] for keyword in ("const", "default") if keyword in inner]
        given += [value for keyword in ("examples", "enum") for value in to_list(inner.get(keyword))]
        given += [_SAMPLES[kind] for kind in [as_text(inner.get("type"))] if kind in _SAMPLES]
        if not given:
            return None
        arguments[as_text(name)] = given[0]
    return arguments
