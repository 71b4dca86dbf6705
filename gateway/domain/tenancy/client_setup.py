"""Known MCP clients, each with the command or configuration that connects it to an MCP URL.

`gateway try` and the page of a tenant use the same table.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.http.mcp_requests import request_body, request_headers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTarget:
    """An MCP URL, its name in the client's configuration, and a key; without a key, the client signs the person in."""

    name: str
    url: str
    key: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The header with the key, if there is one."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSetup:
    """A known client: `write` returns the line to paste at `place`; `then` is the step that signs the person in."""

    name: str
    place: str
    write: Callable[[ClientTarget], str]
    then: str = ""
    takes_key: bool = True
    """False for a client that connects by sign-in only."""
    registers: bool = False
    """True for a client that, to sign in, registers itself at the gateway; False if it has a metadata document."""


def client_lines(target: ClientTarget) -> Sequence[tuple[str, str]]:
    """Return the name and the line of each client that can use the target's credential."""
    return [(each.name, each.write(target)) for each in clients_for(target)]


def clients_for(target: ClientTarget) -> Sequence[ClientSetup]:
    """Return the clients that can use the target's credential."""
    return [each for each in CLIENTS if each.takes_key or target.key is None]


def curl_line(url: str, headers: Mapping[str, str], body: Mapping[str, object]) -> str:
    """Return a shell command that sends a request."""
    options = " ".join(f"-H {shlex.quote(f'{header}: {value}')}" for header, value in headers.items())
    return f"curl -sS {shlex.quote(url)} {options} -d {shlex.quote(json.dumps(body, separators=(',', ':')))}"


def _url(target: ClientTarget) -> str:
    return target.url


def _claude_code(target: ClientTarget) -> str:
    return f"claude mcp add --transport http {_quoted(target)}{_header_option(target)}"


def _gemini(target: ClientTarget) -> str:
    return f"gemini mcp add --transport http {_quoted(target)}{_header_option(target)}"


def _codex(target: ClientTarget) -> str:
    name = shlex.quote(target.name)
    add = f"codex mcp add {name} --url {shlex.quote(target.url)}"
    if target.key is None:
        return f"{add} && codex mcp login {name}"
    # Codex refuses a key in its configuration; it reads the variable when it starts.
    return f"export GATEWAY_KEY={shlex.quote(target.key)} && {add} --bearer-token-env-var GATEWAY_KEY"


def _vs_code(target: ClientTarget) -> str:
    return f"code --add-mcp {shlex.quote(json.dumps({'name': target.name, 'type': 'http', **_server(target)}))}"


def _servers(target: ClientTarget) -> str:
    return json.dumps({"mcpServers": {target.name: _server(target)}})


def _goose(target: ClientTarget) -> str:
    # JSON is YAML.
    fields = {"enabled": True, "type": "streamable_http", "name": target.name, "description": "", "uri": target.url}
    return json.dumps({"extensions": {target.name: {**fields, "timeout": 300, "headers": target.headers}}})


def _curl(target: ClientTarget) -> str:
    credential = target.headers or {"Authorization": "Bearer ACCESS-TOKEN"}
    return curl_line(target.url, {**credential, **request_headers("tools/list")}, request_body("tools/list"))


def _quoted(target: ClientTarget) -> str:
    return f"{shlex.quote(target.name)} {shlex.quote(target.url)}"


def _header_option(target: ClientTarget) -> str:
    return "" if target.key is None else f' --header "Authorization: Bearer {target.key}"'


def _server(target: ClientTarget) -> dict[str, object]:
    return {"url": target.url, **({"headers": target.headers} if target.headers else {})}


CLIENTS: Sequence[ClientSetup] = (
    ClientSetup(
        name="Claude",
        place="Settings, Connectors, Add custom connector: the URL",
        write=_url,
        then="Connect",
        takes_key=False,
    ),
    ClientSetup(name="Claude Code", place="a shell", write=_claude_code, then="/mcp in a session"),
    ClientSetup(
        name="ChatGPT",
        place="Settings, Connectors, developer mode, Create: the URL, with OAuth as authentication",
        write=_url,
        then="Create",
        takes_key=False,
    ),
    ClientSetup(name="VS Code", place="a shell", write=_vs_code, then="Start in MCP: List Servers"),
    ClientSetup(
        name="Cursor", place="~/.cursor/mcp.json", write=_servers, then="Settings, MCP, Needs login", registers=True
    ),
    ClientSetup(name="Codex", place="a shell", write=_codex, registers=True),
    ClientSetup(name="Gemini CLI", place="a shell", write=_gemini, then="/mcp auth in a session", registers=True),
    ClientSetup(name="Goose", place="~/.config/goose/config.yaml", write=_goose, then="the first use", registers=True),
    ClientSetup(
        name="Neovim",
        place="~/.config/mcphub/servers.json of mcphub.nvim",
        write=_servers,
        then=":MCPHub",
        registers=True,
    ),
    ClientSetup(name="curl", place="a shell", write=_curl),
)
