"""The raw requests that the load generator sends."""

import json
from typing import Any

import pytest

from benchmarks import requests


def _split(raw: bytes) -> tuple[str, dict[str, str], Any]:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert int(headers["content-length"]) == len(body)
    return first, headers, json.loads(body)


def test_a_modern_request_is_complete_in_itself() -> None:
    """MCP 2026-07-28: headers and body name version, method and tool alike."""
    first, headers, body = _split(requests.modern("/t/a/mcp", "tools/call", requests.CALL, key="k"))

    assert first == "POST /t/a/mcp HTTP/1.1"
    assert headers["authorization"] == "Bearer k"
    assert headers["mcp-protocol-version"] == requests.MODERN
    assert (headers["mcp-method"], headers["mcp-name"]) == (body["method"], body["params"]["name"])
    assert body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == requests.MODERN


def test_a_modern_request_without_a_name_has_no_name_header() -> None:
    """MCP 2026-07-28: `Mcp-Name` mirrors what the body has, and a list has none."""
    _, headers, body = _split(requests.modern("/mcp", "tools/list"))

    assert "mcp-name" not in headers
    assert "authorization" not in headers
    assert list(body["params"]) == ["_meta"]


def test_a_handshake_request_names_its_session() -> None:
    """MCP 2025-11-25: after initialize every request carries the session and the version agreed on."""
    _, headers, body = _split(requests.handshake("/mcp", "tools/call", requests.CALL, key="k", session="s"))

    assert headers["mcp-session-id"] == "s"
    assert headers["mcp-protocol-version"] == requests.HANDSHAKE
    assert "_meta" not in body["params"]


def test_initialize_negotiates_the_version_in_its_body() -> None:
    """MCP 2025-11-25: there is no version header before one is agreed on."""
    _, headers, body = _split(requests.handshake("/mcp", "initialize", requests.INITIALIZE))

    assert "mcp-protocol-version" not in headers
    assert body["params"]["protocolVersion"] == requests.HANDSHAKE


@pytest.mark.parametrize("tools", [1, 100, 1000])
def test_a_document_has_the_requested_number_of_operations(tools: int) -> None:
    """Ours: the tool that is called is among them, every id is used once."""
    made = requests.document(8000, tools)
    ids = {path["get"]["operationId"] for path in made["paths"].values()}

    assert len(made["paths"]) == len(ids) == tools
    assert requests.CALL["name"] in ids
