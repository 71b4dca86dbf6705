"""`Gateway.run` as a person's program: over HTTP with servers of its own, and on standard streams without any."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.behaviour.cli.conftest import environment

PROGRAM = """
import sys
from gateway.embed import Context, Gateway

gateway = Gateway()

@gateway.tool
def greet(name: str, context: Context) -> str:
    '''Greets a person.'''
    print("printed by a tool")
    return f"Hello, {name} of {context.tenant}"

gateway.run(transport=sys.argv[1])
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The program on disk."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@contextmanager
def _serving(program: Path) -> Generator[tuple[str, str]]:
    """The MCP URL and the key that the running program prints."""
    variables = environment(GATEWAY_PORT="0", GATEWAY_DATA_DIR=str(program.parent / "data"))
    command = [sys.executable, "-P", str(program), "http"]
    with subprocess.Popen(command, env=variables, cwd=program.parent, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield _printed(process.stdout)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def _printed(output: IO[str]) -> tuple[str, str]:
    lines = [output.readline() for _ in range(3)]
    text = "".join(lines)
    url = re.search(r"^MCP URL +(http://127\.0\.0\.1:\d+/t/local/mcp)$", text, re.MULTILINE)
    key = re.search(r"^header +Authorization: Bearer (mcpg_live_\S+)$", text, re.MULTILINE)
    assert url is not None, text
    assert key is not None, text
    assert lines[2].startswith("Claude Code  claude mcp add --transport http gateway ")
    return url[1], key[1]


async def test_a_program_over_http_prints_where_it_serves(program: Path) -> None:
    """Ours: one URL and one key, which work at once, and stay at the next start (PRG-1)."""
    with _serving(program) as (url, key):
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}, timeout=30, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            called = await client.call_tool("greet", {"name": "Ada"})
    with _serving(program) as (_, again):
        assert again == key
    assert getattr(called.content[0], "text", None) == "Hello, Ada of local"
    kept = program.parent / "data" / "local-key"
    assert kept.read_text().strip() == key
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_program_on_standard_streams_needs_no_servers(program: Path, mode: str) -> None:
    """Ours: only messages are on standard output, also when a tool prints; nothing is stored (PRG-1, SRV-1)."""
    command = StdioServerParameters(
        command=sys.executable, args=["-P", str(program), "stdio"], env=environment(), cwd=program.parent
    )
    with (program.parent / "errors").open("w") as errors:
        async with Client(stdio_client(command, errlog=errors), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["greet"]
            called = await client.call_tool("greet", {"name": "Ada"})
    assert getattr(called.content[0], "text", None) == "Hello, Ada of local"
    assert (program.parent / "errors").read_text() == "printed by a tool\n"
    assert sorted(path.name for path in program.parent.iterdir()) == ["errors", "program.py"]
