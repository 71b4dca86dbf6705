"""Primitives whose stored definitions cannot be read, as after a newer release or a damaged disk."""

from typing import Any

import pytest

from tests.support.gateway import RunningGateway
from tests.support.handshake import open_session
from tests.support.primitives import add, static_tool, template, text_prompt, text_resource
from tests.support.servers import TestDatabase, execute

ASKED: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "own", "arguments": {}},
    "prompts/get": {"name": "greet"},
    "resources/read": {"uri": "docs://a"},
}
UNREADABLE = '{"name": "x", "inputSchema": 5, "mimeType": 5, "arguments": 5}'
UNREADABLE_MIRROR = '{"name": "x", "x-mcp-header": 5, "mimeType": 5, "arguments": 5}'
ODD = {"io.modelcontextprotocol/odd": 1}
"""A request with this in `_meta` is judged by the SDK."""


@pytest.mark.parametrize("stored", [UNREADABLE, UNREADABLE_MIRROR])
@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json"])
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
async def test_unreadable_definitions_are_errors_of_the_protocol(
    gateway: RunningGateway, database: TestDatabase, revision: str, accept: str, stored: str
) -> None:
    """MCP: -32603 to the requester, with a code and the correlation id; a schema has a reason (CAL-3, CAL-4)."""
    await gateway.create_tenant("acme")
    key = await gateway.create_key("acme")
    await add(gateway, "acme", "tools", static_tool("own"))
    await add(gateway, "acme", "prompts", text_prompt("greet"))
    await add(gateway, "acme", "resources", text_resource("docs://a"))
    handler = {"kind": "template", "text": "x", "mimeType": "text/plain"}
    await add(gateway, "acme", "resource-templates", template("docs://rows/{id}", handler))
    await execute(database.superuser_url, f"update primitives set definition = '{stored}'")

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        if revision == "2026-07-28":
            mirrored = {"mcp-name": params["uri"]} if "uri" in params else {}
            answer = await gateway.rpc("acme", key, method, params, accept=accept, **mirrored)
            reported: dict[str, Any] = answer.json()
            return reported
        session = await open_session(gateway, "acme", key, version=revision)
        return await session.rpc(method, params)

    for method, params in (*ASKED.items(), ("resources/read", {"uri": "docs://rows/7"})):
        for odd in ({}, {"_meta": ODD}):
            error = (await ask(method, {**params, **odd}))["error"]
            is_tool = method == "tools/call"
            assert error["code"] == (-32602 if is_tool else -32603), method
            assert error["message"].startswith("this version cannot compile" if is_tool else "Internal server error")
            assert error["data"]["code"] == ("input.not_yet_supported" if is_tool else "internal")
            assert error["data"]["correlation_id"]
