"""What to paste where: one ready line for each known MCP client."""

import json
import shlex
from collections.abc import Sequence

from gateway.cli.endpoint import request_body, request_headers
from gateway.cli.tables import render_pairs


def client_lines(name: str, url: str, key: str) -> Sequence[tuple[str, str]]:
    """Each client with the line that connects it."""
    return (
        ("Claude Code", claude_code_line(name, url, key)),
        ("Cursor", cursor_line(name, url, key)),
        ("VS Code", vs_code_line(name, url, key)),
        ("curl", curl_line(url, key)),
    )


def claude_code_line(name: str, url: str, key: str) -> str:
    """A command for a shell."""
    authorization = f'"Authorization: Bearer {key}"'
    return f"claude mcp add --transport http {shlex.quote(name)} {shlex.quote(url)} --header {authorization}"


def cursor_line(name: str, url: str, key: str) -> str:
    """The contents of `mcp.json`."""
    return json.dumps({"mcpServers": {name: {"url": url, "headers": _headers(key)}}})


def vs_code_line(name: str, url: str, key: str) -> str:
    """A command for a shell."""
    server = {"name": name, "type": "http", "url": url, "headers": _headers(key)}
    return f"code --add-mcp {shlex.quote(json.dumps(server))}"


def curl_line(url: str, key: str) -> str:
    """A command for a shell that lists the tools in revision 2026-07-28."""
    headers = {**_headers(key), **request_headers("tools/list")}
    options = " ".join(f"-H {shlex.quote(f'{header}: {value}')}" for header, value in headers.items())
    body = json.dumps(request_body("tools/list"), separators=(",", ":"))
    return f"curl -sS {shlex.quote(url)} {options} -d {shlex.quote(body)}"


def render_clients(name: str, url: str, key: str) -> str:
    """The lines as a person reads and copies them: URL and credential first."""
    pairs = [("MCP URL", url), ("header", f"Authorization: Bearer {key}")]
    return render_pairs([*pairs, *client_lines(name, url, key)])


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}
