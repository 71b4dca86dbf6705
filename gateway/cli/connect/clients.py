"""The clients that `gateway connect` configures: the file of each, and the form of a server in it."""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.cli.connect.file_formats import JSON, TOML, YAML, FileFormat
from gateway.cli.input.json_fields import JsonObject
from gateway.domain.tenancy.client_setup import ClientTarget

_DARWIN: Final = "Library/Application Support"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredClient:
    """One client with its file."""

    name: str
    """The name on the command line, such as `claude-code`."""
    title: str
    file: str
    """The path below the home folder on Linux."""
    darwin: str = ""
    """The path on macOS, if it differs."""
    windows: str = ""
    """The path below the home folder on Windows, if it differs."""
    form: FileFormat = JSON
    members: Sequence[str] = ("mcpServers",)
    """The place of the servers in the file; each is a member with its name."""
    entry: Callable[[ClientTarget], JsonObject]
    """Builds a server."""
    is_program: bool = False
    """True if the client only starts programs: the entry runs `gateway stdio`."""
    then: str
    """The step after which the client has read its file again."""

    def path(self, home: Path, platform: str) -> Path:
        """The file of this client."""
        others: Mapping[str, str] = {"darwin": self.darwin, "win32": self.windows}
        return home / (others.get(platform) or self.file)


def _remote(url: str = "url", **more: object) -> Callable[[ClientTarget], JsonObject]:
    """Return a function that builds an entry with the URL under this name, and the headers."""

    def build(target: ClientTarget) -> JsonObject:
        return {**more, url: target.url, "headers": target.headers}

    return build


def _program(target: ClientTarget) -> JsonObject:
    program = shutil.which("gateway")
    command, *first = [program] if program is not None else [sys.executable, "-m", "gateway"]
    variables = {} if target.key is None else {"GATEWAY_KEY": target.key}
    return {"command": command, "args": [*first, "stdio", "--url", target.url], "env": variables}


def _codex(target: ClientTarget) -> JsonObject:
    return {"url": target.url, "http_headers": target.headers}


def _goose(target: ClientTarget) -> JsonObject:
    fixed: JsonObject = {"enabled": True, "type": "streamable_http", "name": target.name, "description": ""}
    return {**fixed, "uri": target.url, "timeout": 300, "headers": target.headers}


CLIENTS: Final[Mapping[str, ConfiguredClient]] = {
    one.name: one
    for one in (
        ConfiguredClient(
            name="claude-code",
            title="Claude Code",
            file=".claude.json",
            entry=_remote(type="http"),
            then="start a session; /mcp lists it",
        ),
        ConfiguredClient(
            name="claude-desktop",
            title="Claude Desktop",
            file=".config/Claude/claude_desktop_config.json",
            darwin=f"{_DARWIN}/Claude/claude_desktop_config.json",
            windows="AppData/Roaming/Claude/claude_desktop_config.json",
            entry=_program,
            is_program=True,
            then="quit and start Claude Desktop",
        ),
        ConfiguredClient(
            name="cursor",
            title="Cursor",
            file=".cursor/mcp.json",
            entry=_remote(),
            then="Settings, MCP: the server is on",
        ),
        ConfiguredClient(
            name="vscode",
            title="VS Code",
            file=".config/Code/User/mcp.json",
            darwin=f"{_DARWIN}/Code/User/mcp.json",
            windows="AppData/Roaming/Code/User/mcp.json",
            members=("servers",),
            entry=_remote(type="http"),
            then="MCP: List Servers, Start",
        ),
        ConfiguredClient(
            name="codex",
            title="Codex",
            file=".codex/config.toml",
            form=TOML,
            members=("mcp_servers",),
            entry=_codex,
            then="start codex; /mcp lists it",
        ),
        ConfiguredClient(
            name="gemini",
            title="Gemini CLI",
            file=".gemini/settings.json",
            entry=_remote("httpUrl"),
            then="start gemini; /mcp lists it",
        ),
        ConfiguredClient(
            name="zed",
            title="Zed",
            file=".config/zed/settings.json",
            windows="AppData/Roaming/Zed/settings.json",
            members=("context_servers",),
            entry=_remote(),
            then="the agent panel's settings list it",
        ),
        ConfiguredClient(
            name="windsurf",
            title="Windsurf",
            file=".codeium/windsurf/mcp_config.json",
            entry=_remote("serverUrl"),
            then="refresh the MCP servers in Cascade",
        ),
        ConfiguredClient(
            name="goose",
            title="Goose",
            file=".config/goose/config.yaml",
            windows="AppData/Roaming/Block/goose/config/config.yaml",
            form=YAML,
            members=("extensions",),
            entry=_goose,
            then="start a goose session",
        ),
    )
}
