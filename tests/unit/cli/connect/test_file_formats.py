"""One server is set in a client's file, and everything else stays."""

import json
import tomllib

import pytest

from gateway.cli.connect.clients import CLIENTS
from gateway.cli.connect.file_formats import JSON, TOML, YAML, FileFormat, Unreadable
from gateway.cli.input.json_fields import JsonObject, pick
from gateway.domain.tenancy.client_setup import ClientTarget

_TARGET = ClientTarget(name="acme", url="https://mcp.example/t/acme/mcp", key="mcpg_live_x")
_ENTRY: JsonObject = {"url": "https://a.example/mcp", "headers": {"Authorization": 'Bearer "k"'}}
_TOML = """model = "x" # kept

[mcp_servers.acme]
url = "old"

[mcp_servers.acme.env]
A = "1"

[mcp_servers.other]
url = "u"
"""


@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_reads_the_server_that_is_written(name: str) -> None:
    """Ours: the entry is at the client's place, in an empty file and beside another server (CLI-1)."""
    client = CLIENTS[name]
    entry = client.entry(_TARGET)
    first = client.form.write("", client.members, "acme", entry)
    second = client.form.write(first, client.members, "other", entry)

    assert pick(client.form.read(second), *client.members) == {"acme": entry, "other": entry}
    removed = client.form.write(second, client.members, "other", None)
    assert pick(client.form.read(removed), *client.members) == {"acme": entry}
    assert _TARGET.url in json.dumps(entry)
    assert "mcpg_live_x" in json.dumps(entry)


def test_other_members_and_the_indentation_of_json_stay() -> None:
    """Ours: the file of Claude Code holds much more than servers."""
    text = JSON.write('{\n\t"a": [1, "ü"],\n\t"mcpServers": {"b": {}}\n}', ["mcpServers"], "acme", _ENTRY)

    assert json.loads(text) == {"a": [1, "ü"], "mcpServers": {"b": {}, "acme": _ENTRY}}
    assert '\n\t"a"' in text
    assert "ü" in text


def test_comments_and_other_tables_of_toml_stay() -> None:
    """Ours: the former table is replaced with those within it."""
    text = TOML.write(_TOML, ["mcp_servers"], "acme", _ENTRY)

    assert tomllib.loads(text) == {"model": "x", "mcp_servers": {"acme": _ENTRY, "other": {"url": "u"}}}
    assert "# kept" in text
    assert TOML.write(text, ["mcp_servers"], "acme", None).count("acme") == 0
    quoted = TOML.write("", ["mcp_servers"], "a.b", _ENTRY)
    assert tomllib.loads(TOML.write(quoted, ["mcp_servers"], "a.b", _ENTRY)) == {"mcp_servers": {"a.b": _ENTRY}}


@pytest.mark.parametrize(
    ("form", "text", "reason"),
    [
        (JSON, '{\n  // mine\n  "a": 1\n}', "comments or trailing commas"),
        (JSON, '{"a": }', "Expecting value"),
        (JSON, "[1]", "no object"),
        (JSON, '{"servers": [1]}', "`servers` is no object"),
        (YAML, "# mine\na: 1\n", "comments, which would be lost"),
        (YAML, "a: [", "no YAML"),
        (TOML, "a = ", "no TOML"),
        (TOML, "[servers]\nacme = { url = 'x' }\n", "written in another form"),
    ],
)
def test_a_file_of_which_something_would_be_lost_is_not_changed(form: FileFormat, text: str, reason: str) -> None:
    """Ours: the refusal has the reason."""
    with pytest.raises(Unreadable, match=reason):
        form.write(text, ["servers"], "acme", _ENTRY)
