"""Pages (MCP Apps) of other MCP servers behind a tenant's URL: whose they are, what they may call, and their review."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from mcp import Client
from mcp.client import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp.shared.exceptions import MCPError

from tests.integration.upstream.live.app_server import PAGE, AppServer, running_app_server
from tests.support.gateway import RunningGateway
from tests.support.replicas import until
from tests.support.stand import Stand, common_stand, stand

__all__ = ["common_stand", "stand"]
Mode = Literal["legacy", "2026-07-28"]
MODES: tuple[Mode, ...] = ("legacy", "2026-07-28")
SHOWN = "ui://bank/charts/view.html"
CHANGED = "<p>changed</p>"


@dataclass(frozen=True)
class Pages:
    """A tenant with servers that have the same page and the same tools."""

    gateway: RunningGateway
    key: str
    servers: dict[str, AppServer]

    async def ask(self, method: str, path: str, **more: Any) -> Any:
        """Send an admin request for a live source; return the response."""
        answer = await self.gateway.admin.request(method, f"/tenants/acme/live-sources/{path}", **more)
        return answer.raise_for_status().json()

    @asynccontextmanager
    async def client(self, mode: Mode = "2026-07-28", **more: Any) -> AsyncGenerator[Client]:
        """A client of the tenant."""
        async with self.gateway.client("acme", self.key, mode, **more) as client:
            yield client


@asynccontextmanager
async def federated(stand: Stand, *names: str, is_older: bool = False) -> AsyncGenerator[Pages]:
    """A tenant with a server for each name while the block runs; all are attached."""
    gateway = stand.gateway
    await gateway.create_tenant("acme")
    async with AsyncExitStack() as stack:
        running = {name: await stack.enter_async_context(running_app_server(name, is_older=is_older)) for name in names}
        pages = Pages(gateway, await gateway.create_key("acme"), running)
        allow = {"allow": [f"127.0.0.1:{server.sdk.port}" for server in running.values()]}
        (await gateway.admin.put("/tenants/acme/egress", json=allow)).raise_for_status()
        for name, server in running.items():
            body = {"name": name, "kind": "mcp", "prefix": f"{name}_", "settings": {"url": server.sdk.url}}
            (await gateway.admin.post("/tenants/acme/live-sources", json=body)).raise_for_status()

            async def is_attached(name: str = name) -> bool:
                return bool((await pages.ask("GET", name))["status"]["state"] == "attached")

            await until(is_attached, seconds=30)
        yield pages


def text(result: Any) -> str:
    """The text of a result."""
    return "".join(part.text for part in getattr(result, "content", None) or result.contents)


async def is_unknown(client: Client, name: str) -> bool:
    """True if the client has no such tool."""
    try:
        return bool((await client.call_tool(name, {})).is_error)
    except MCPError:
        return True


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_opens_the_page_of_its_own_server(stand: Stand, mode: Mode) -> None:
    """DYN-5: two servers name their pages alike; every key of `_meta` names the page of the tool's server."""
    async with federated(stand, "bank", "evil") as pages, pages.client(mode) as client:
        tools = {tool.name: tool.meta or {} for tool in (await client.list_tools()).tools}
        listed = {one.uri: one for one in (await client.list_resources()).resources}
        for name in ("bank", "evil"):
            uri = f"ui://{name}/charts/view.html"
            meta = tools[f"{name}_chart"]
            assert meta == {"ui": {"resourceUri": uri}, "ui/resourceUri": uri, "openai/outputTemplate": uri}
            assert listed[uri].mime_type == APP_MIME_TYPE
            read = await client.read_resource(uri)
            assert (read.contents[0].uri, text(read)) == (uri, f"<p>page of {name}</p>")
        with pytest.raises(MCPError):
            await client.read_resource(PAGE)


async def test_a_page_calls_the_tools_of_its_server_by_their_names_there(stand: Stand) -> None:
    """DYN-5: a name is resolved while one server with pages has such a tool; policy and trail know its own name."""
    async with federated(stand, "bank", "evil") as pages, pages.client() as client:
        assert text(await client.call_tool("redraw_bank", {})) == "redraw_bank of bank"
        assert text(await client.call_tool("redraw_evil", {})) == "redraw_evil of evil"
        assert await is_unknown(client, "refresh")
        assert await is_unknown(client, "report_bank")
        trail = (await pages.gateway.admin.get("/tenants/acme/audit", params={"limit": 20})).json()
        assert "bank_redraw_bank" in str(trail["items"])
        await pages.ask("PATCH", "evil", json={"exclude": ["refresh"]})

        async def is_found() -> bool:
            return not await is_unknown(client, "refresh")

        await until(is_found, seconds=30)
        assert text(await client.call_tool("refresh", {})) == "refresh of bank"
        denied = {"rules": [{"tool": "bank_refresh", "decision": "deny"}]}
        (await pages.gateway.admin.patch("/tenants/acme/policy", json=denied)).raise_for_status()
        assert "policy.denied" in str((await client.call_tool("refresh", {})).meta)


@pytest.mark.parametrize("is_older", [False, True], ids=["newest", "older"])
@pytest.mark.parametrize("mode", MODES)
async def test_a_server_learns_whether_the_client_shows_pages(stand: Stand, mode: Mode, *, is_older: bool) -> None:
    """DYN-5: the extension of the client reaches the server, in both eras of either."""
    shows = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]
    others = [advertise(EXTENSION_ID, {"mimeTypes": ["text/plain"]})]
    async with federated(stand, "bank", is_older=is_older) as pages:
        for extensions, expected in ((shows, "yes"), (others, "no"), ([], "no")):
            async with pages.client(mode, extensions=extensions) as client:
                assert text(await client.call_tool("bank_supports_pages", {})) == expected


async def test_a_page_that_changes_waits_for_a_review(stand: Stand) -> None:
    """DYN-5: a reviewed tool never opens other contents than those accepted; the difference is shown."""
    async with federated(stand, "bank") as pages, pages.client() as client:
        assert text(await client.read_resource(SHOWN)) == "<p>page of bank</p>"
        pages.servers["bank"].page = CHANGED
        with pytest.raises(MCPError, match="has changed since it was accepted"):
            await client.read_resource(SHOWN)
        await client.call_tool("bank_touch", {})

        async def is_held() -> bool:
            found = await pages.ask("GET", "bank")
            return any(SHOWN in line for line in found["status"]["review"])

        await until(is_held, seconds=30)
        [held] = (await pages.ask("GET", "bank/primitives", params={"state": "held"}))["items"]
        assert held["changed"] == ["/_meta/gateway~1page"]
        with pytest.raises(MCPError):
            await client.read_resource(SHOWN)
        await pages.ask("POST", "bank/accept", json={"names": [SHOWN], "digests": [held["digest"]]})

        async def is_read() -> bool:
            try:
                return text(await client.read_resource(SHOWN)) == CHANGED
            except MCPError:
                return False

        await until(is_read, seconds=30)
        await pages.ask("PATCH", "bank", json={"accepts_changes": True})
        pages.servers["bank"].page = "<p>again</p>"

        async def is_free() -> bool:
            try:
                return text(await client.read_resource(SHOWN)) == "<p>again</p>"
            except MCPError:
                return False

        await until(is_free, seconds=30)
