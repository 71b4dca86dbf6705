"""A FastMCP server for the gateway to attach to, run in an environment of its own: `python -P … PORT`."""

# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# pyright: reportUnknownMemberType=false, reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false
import sys
from typing import Any

from fastmcp import Context, FastMCP  # type: ignore[import-not-found]  # an environment of its own

mcp: Any = FastMCP("fast", version="1")


@mcp.tool(annotations={"readOnlyHint": True})  # type: ignore[untyped-decorator]
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool  # type: ignore[untyped-decorator]
async def work(ctx: Context) -> str:
    """Report progress and log."""
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return "worked"


@mcp.tool  # type: ignore[untyped-decorator]
async def ask(ctx: Context) -> str:
    """Ask the user for a name."""
    answer: Any = await ctx.elicit("Which name?", response_type=str)
    return str(getattr(answer, "data", answer.action))


@mcp.tool  # type: ignore[untyped-decorator]
async def count(ctx: Context) -> str:
    """Count the calls in the session."""
    counted: int = (await ctx.get_state("calls") or 0) + 1
    await ctx.set_state("calls", counted)
    return str(counted)


@mcp.tool  # type: ignore[untyped-decorator]
def fail() -> str:
    """Raise an error."""
    raise ValueError("no luck")


@mcp.resource("notes://one")  # type: ignore[untyped-decorator]
def one() -> str:
    """The only note."""
    return "first note"


@mcp.resource("notes://by/{name}")  # type: ignore[untyped-decorator]
def named(name: str) -> str:
    """A note by name."""
    return f"note {name}"


@mcp.prompt  # type: ignore[untyped-decorator]
def greet(name: str) -> str:
    """Greet a person."""
    return f"Greet {name}."


if __name__ == "__main__":
    mcp.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
