"""`gateway try` on GitHub's document: everything is listed in both eras, and a call is as the document describes it."""

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.behaviour.cli.conftest import serving
from tests.support.serving import NO_TLS
from tests.support.specs import load_spec
from tests.support.upstream import recording_upstream

CALL: dict[str, Any] = {"owner": "oct/o cat", "repo": "hello", "state": "open", "labels": "bug,ui", "per_page": 3}
TARGET = "/repos/oct%2Fo%20cat/hello/issues?state=open&labels=bug%2Cui&per_page=3"


async def _walk(url: str, key: str, mode: Any) -> list[str]:
    """Every tool through all pages, and one call."""
    names: list[str] = []
    async with (
        httpx2.AsyncClient(
            verify=NO_TLS, headers={"authorization": f"Bearer {key}"}, timeout=30, trust_env=False
        ) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            names += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        called = next(name for name in names if name.replace("_", "/") == "issues/list-for-repo")
        result = await client.call_tool(called, CALL)
    assert result.is_error is False
    return names


@pytest.mark.long
async def test_all_of_github_is_listed_and_called_in_both_eras(tmp_path: Path) -> None:
    """Ours: 1,223 operations through pages, one call as the document has it (OAS-1, OAS-3, CAL-1, SRV-1, RES-3)."""
    document = tmp_path / "github.json"
    document.write_bytes(load_spec("github.json"))
    async with recording_upstream() as upstream:
        command = ("try", str(document), "--base-url", upstream.url, "--json")
        with serving(*command, folder=tmp_path) as lines:
            with anyio.fail_after(120):
                printed = await anyio.to_thread.run_sync(_read_object, lines)
            legacy = await _walk(printed["url"], printed["key"], "legacy")
            modern = await _walk(printed["url"], printed["key"], "auto")

    assert sum(printed["report"]["counts"].values()) == len(printed["report"]["operations"]) == 1223
    operations = {operation["tool"] for operation in printed["report"]["operations"]}
    assert set(legacy) == set(modern) == {*operations, "get_endpoint_details"}  # the list is shortened
    assert len(legacy) == len(modern) == printed["tools"] == 1224
    assert [(seen.method, seen.target) for seen in upstream.seen] == [("GET", TARGET)] * 2


def _read_object(lines: Any) -> dict[str, Any]:
    """The JSON object that the command prints; it ends with a brace on a line of its own, or is one line."""
    text = ""
    for line in lines:
        text += line
        try:
            value: dict[str, Any] = json.loads(text)
        except ValueError:
            continue
        return value
    raise AssertionError(text)
