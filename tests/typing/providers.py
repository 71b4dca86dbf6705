"""Errors of type checkers about wrong providers: a line that ends with `# expect` has an error, all others none."""

from collections.abc import Mapping
from typing import Any

from gateway.provide import Provider, ProviderContext, Result, success

provider = Provider("https://gateway.example.com/t/acme", "key", source="x")
Provider("https://gateway.example.com/t/acme", "key")  # expect
Provider("https://gateway.example.com/t/acme", 7, source="x")  # expect


@provider.tool()
async def good(name: str, count: int = 1, *, context: ProviderContext) -> Result:
    await context.progress(1, 2, "half")
    await context.progress("much")  # expect
    await context.log("info", {"a": 1})
    await context.log("loud", {"a": 1})  # expect
    reply = await context.ask("sure?")
    return success({"accepted": reply.is_accepted, "name": name * count})


@provider.tool("plain", title="Plain", annotations={"readOnlyHint": True})
def plain(context: ProviderContext) -> str:
    context.wait(context.progress(1))
    return "done"


@provider.tool(annotations={"readOnly": True})  # expect
def wrong_hint() -> None: ...


@provider.tool(7)  # expect
def wrong_name() -> None: ...


@provider.resource("notes://today")
def today() -> str:
    return "nothing"


@provider.prompt()
def review(path: str) -> str:
    return path


async def handle(arguments: Mapping[str, Any], context: ProviderContext) -> object:
    return arguments


async def handle_nothing() -> None: ...


provider.add_tool({"name": "raw", "description": "x", "inputSchema": {"type": "object", "properties": {}}}, handle)
provider.add_tool({"name": "raw", "inputSchema": {"type": "object", "properties": {}}}, handle)  # expect
provider.add_tool({"description": "x", "inputSchema": {"type": "object", "properties": {}}}, handle_nothing)  # expect
decorated: str = today()
wrong_return: int = today()  # expect
