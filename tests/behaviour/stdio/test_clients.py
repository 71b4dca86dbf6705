"""The SDK's client for Python starts servers on standard streams and uses them in each of its modes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import ElicitRequestParams, ElicitResult

from tests.behaviour.cli.conftest import environment
from tests.behaviour.stdio.conftest import Tenant
from tests.support.python_command import module_command
from tests.support.workers import worker_template

Mode = Literal["auto", "legacy", "2026-07-28"]
MODES: tuple[Mode, ...] = ("auto", "legacy", "2026-07-28")


@asynccontextmanager
async def _client(*arguments: str, folder: Path, mode: Mode, **more: Any) -> AsyncGenerator[Client]:
    variables = environment(**more.pop("variables", {}))
    program, *options = module_command("gateway", worker_template())
    command = StdioServerParameters(command=program, args=[*options, "stdio", *arguments], env=variables, cwd=folder)
    with (folder / "errors").open("w") as errors:
        async with Client(stdio_client(command, errlog=errors), mode=mode, **more) as client:
            yield client


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_uses_documents(pets_file: Path, tmp_path: Path, mode: Mode) -> None:
    """MCP: the official client lists and calls in both eras, and confirms a call when it is asked (SRV-1, SAF-2)."""
    asked: list[str] = []

    async def confirm(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"confirm": True})

    arguments = ["--spec", str(pets_file), "--moderate", "confirm"]
    async with _client(*arguments, folder=tmp_path, mode=mode, elicitation_callback=confirm) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"get_pet", "create_pet"}
        assert (await client.call_tool("get_pet", {"id": 7})).structured_content == {"ok": True}
        made = await client.call_tool("create_pet", {"body": {"name": "Rex"}})
    assert not made.is_error
    assert len(asked) == 1
    assert "Traceback" not in (tmp_path / "errors").read_text()


@pytest.mark.parametrize("mode", MODES)
async def test_the_sdk_uses_a_tenant_over_the_bridge(acme: Tenant, tmp_path: Path, mode: Mode) -> None:
    """MCP: the same client, with a bridge between it and the tenant's URL (SRV-1)."""
    variables = {"GATEWAY_KEY": acme.key}
    async with _client("--url", acme.url, folder=tmp_path, mode=mode, variables=variables) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"get_pet", "create_pet"}
        assert (await client.call_tool("get_pet", {"id": 7})).structured_content == {"ok": True}
        assert (await client.call_tool("get_pet", {"id": "seven"})).is_error
    assert (tmp_path / "errors").read_text() == ""
