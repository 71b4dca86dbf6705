"""The lines that connect known clients, as the clients read them."""

import json
import shlex

import pytest
import yaml

from gateway.domain.tenancy.client_setup import CLIENTS, ClientTarget, client_lines

_URL = "https://gateway.example/t/acme/mcp"
_KEY = "mcpg_live_abc"
_BEARER = {"Authorization": f"Bearer {_KEY}"}
_BY_KEY = ClientTarget(name="o'shop", url=_URL, key=_KEY)
_BY_SIGN_IN = ClientTarget(name="o'shop", url=_URL)


def test_every_client_has_exactly_one_line_and_a_place() -> None:
    """Ours: a line can be copied whole; clients that take no key are left out where there is one (SRV-1)."""
    by_key, by_sign_in = dict(client_lines(_BY_KEY)), dict(client_lines(_BY_SIGN_IN))

    assert set(by_sign_in) - set(by_key) == {"Claude", "ChatGPT"}
    assert len(by_sign_in) == len(CLIENTS)
    assert all(_URL in line and "\n" not in line for line in [*by_key.values(), *by_sign_in.values()])
    assert all(_KEY in line for line in by_key.values())
    assert all(client.place for client in CLIENTS)


@pytest.mark.parametrize("program", ["claude", "gemini"])
def test_commands_carry_the_key_in_one_header(program: str) -> None:
    """Ours: pasting the line connects the client; without a key, the client signs in (SRV-1)."""
    name = {"claude": "Claude Code", "gemini": "Gemini CLI"}[program]
    start = [program, "mcp", "add", "--transport", "http", "o'shop", _URL]

    assert shlex.split(dict(client_lines(_BY_SIGN_IN))[name]) == start
    assert shlex.split(dict(client_lines(_BY_KEY))[name]) == [*start, "--header", f"Authorization: Bearer {_KEY}"]


def test_codex_reads_the_key_from_a_variable_or_signs_in() -> None:
    """Ours: Codex accepts no key in its configuration (SRV-1)."""
    add = ["codex", "mcp", "add", "o'shop", "--url", _URL]

    by_key, by_sign_in = (shlex.split(dict(client_lines(each))["Codex"]) for each in (_BY_KEY, _BY_SIGN_IN))

    assert by_key == ["export", f"GATEWAY_KEY={_KEY}", "&&", *add, "--bearer-token-env-var", "GATEWAY_KEY"]
    assert by_sign_in == [*add, "&&", "codex", "mcp", "login", "o'shop"]


def test_configuration_files_name_the_url_and_the_header() -> None:
    """Ours: each line can be the whole of the client's file (SRV-1)."""
    lines, plain = dict(client_lines(_BY_KEY)), dict(client_lines(_BY_SIGN_IN))

    for name in ("Cursor", "Neovim"):
        assert json.loads(lines[name]) == {"mcpServers": {"o'shop": {"url": _URL, "headers": _BEARER}}}
        assert json.loads(plain[name]) == {"mcpServers": {"o'shop": {"url": _URL}}}
    goose = yaml.safe_load(lines["Goose"])["extensions"]["o'shop"]
    assert (goose["type"], goose["uri"], goose["headers"]) == ("streamable_http", _URL, _BEARER)
    words = shlex.split(lines["VS Code"])
    assert words[:2] == ["code", "--add-mcp"]
    assert json.loads(words[2]) == {"name": "o'shop", "type": "http", "url": _URL, "headers": _BEARER}


def test_the_curl_line_carries_everything_the_revision_demands() -> None:
    """MCP 2026-07-28: version and method in headers, version and capabilities in `_meta`, both media types accepted."""
    words = shlex.split(dict(client_lines(_BY_KEY))["curl"])
    headers = dict(words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H")
    body = json.loads(words[words.index("-d") + 1])

    assert headers["Authorization"] == f"Bearer {_KEY}"
    assert headers["Accept"] == "application/json, text/event-stream"
    assert headers["Content-Type"] == "application/json"
    assert headers["MCP-Protocol-Version"] == "2026-07-28"
    assert headers["Mcp-Method"] == body["method"] == "tools/list"
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] == {}
