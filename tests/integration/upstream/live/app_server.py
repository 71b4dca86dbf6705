"""A server of the SDK with pages (MCP Apps), which its tools open."""

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer
from mcp.server.apps import APP_MIME_TYPE, Apps, client_supports_apps
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resources import FunctionResource

from tests.integration.upstream.live.sdk_server import SdkServer, serving

PAGE = "ui://charts/view.html"


@dataclass(slots=True)
class AppServer:
    """The running server, and the text of its page."""

    sdk: SdkServer
    page: str


@asynccontextmanager
async def running_app_server(name: str, *, is_older: bool = False) -> AsyncGenerator[AppServer]:
    """The server for as long as the block runs; servers of every name use the same URIs and names."""
    apps = Apps()
    listener = socket.create_server(("127.0.0.1", 0))

    def tool(tool_name: str, visibility: Any = None, meta: Any = None) -> None:
        async def run() -> str:
            return f"{tool_name} of {name}"

        apps.tool(resource_uri=PAGE, visibility=visibility, name=tool_name, meta=meta)(run)

    async def page() -> str:
        return server.page

    apps.add_resource(FunctionResource(uri=PAGE, name="view", mime_type=APP_MIME_TYPE, fn=page))
    tool("chart", meta={"ui/resourceUri": PAGE, "openai/outputTemplate": PAGE, "_odd": 1})
    tool("refresh", ["app"])
    tool(f"redraw_{name}", ["app", "model"])
    tool(f"report_{name}", ["model"])
    mcp = MCPServer(name, extensions=[apps])
    server = AppServer(SdkServer(listener.getsockname()[1], mcp), f"<p>page of {name}</p>")
    _register_others(server)
    async with serving(server.sdk, listener, is_older=is_older):
        yield server


def _register_others(server: AppServer) -> None:
    mcp = server.sdk.mcp

    @mcp.tool()
    async def supports_pages(ctx: Context[Any, Any]) -> str:
        """True if the client of this call shows pages."""
        return "yes" if client_supports_apps(ctx) else "no"

    @mcp.tool()
    async def touch(ctx: Context[Any, Any]) -> str:
        """Report an update of the page."""
        await ctx.notify_resource_updated(PAGE)
        return "touched"
