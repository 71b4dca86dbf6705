"""Arguments that a tool of another MCP server marks for headers, from the catalog to its first request."""

from typing import Any

from tests.integration.upstream.live.scripted_server import Scripted, json_body, result
from tests.integration.upstream.loopback import Exchange, loopback
from tests.support.replicas import until
from tests.support.stand import Stand, common_stand, stand

__all__ = ["common_stand", "stand"]
MARKED = {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}}


async def test_the_first_call_has_marked_arguments_in_headers(stand: Stand) -> None:
    """MCP 2026-07-28: clients mirror marked arguments; a balancer may route by them and refuses nothing (DYN-5)."""
    script, seen = Scripted(is_modern=True), list[list[str]]()
    script.capabilities = {"tools": {}}
    script.states("tools/list", {"tools": [{"name": "go", "inputSchema": MARKED}], "resultType": "complete"})

    async def go(exchange: Exchange, message: dict[str, Any]) -> bytes:
        seen.append(exchange.header("mcp-param-city"))
        return json_body(result(message, {"content": [], "resultType": "complete"}))

    script.replies["tools/call"] = go
    gateway = stand.gateway
    await gateway.create_tenant("acme")
    key = await gateway.create_key("acme")
    async with loopback(script.answer) as server:
        allow = {"allow": [server.authority]}
        (await gateway.admin.put("/tenants/acme/egress", json=allow)).raise_for_status()
        body = {"name": "far", "kind": "mcp", "settings": {"url": f"http://{server.authority}/mcp"}}
        (await gateway.admin.post("/tenants/acme/live-sources", json=body)).raise_for_status()

        async def is_attached() -> bool:
            shown = await gateway.admin.get("/tenants/acme/live-sources/far")
            return bool(shown.json()["status"]["state"] == "attached")

        await until(is_attached, seconds=30)
        headers = {"mcp_param_city": "Bonn"}
        called = await gateway.rpc("acme", key, "tools/call", {"name": "go", "arguments": {"city": "Bonn"}}, **headers)
        assert called.json()["result"]["isError"] is False, called.text
    assert seen == [["Bonn"]]
