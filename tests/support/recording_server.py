"""An MCP server that writes down each call before it responds; run with `python -m … PORT SLUG LOG`."""

import json
import os
import sys
from pathlib import Path

import anyio
from mcp.server import MCPServer


def main(port: int, slug: str, log: Path) -> None:
    """Serve until the process ends."""
    mcp = MCPServer(slug)

    @mcp.tool()
    async def note(id: int) -> str:  # noqa: A002  # as the clients of a history name it
        _write_down(log, "note", id)
        return json.dumps({"id": id, "of": f"canary-of-{slug}"})

    @mcp.tool()
    async def hold(id: int) -> str:  # noqa: A002  # as the clients of a history name it
        _write_down(log, "hold", id)
        await anyio.sleep_forever()
        raise AssertionError

    mcp.run("streamable-http", port=port)


def _write_down(log: Path, tool: str, number: int) -> None:
    """Append a line in one write, which is whole even if the process is killed."""
    opened = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(opened, f"{tool} {number}\n".encode())
    os.close(opened)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
