"""Real documents behind a real client: everything is listed, and a call is what the document says."""

from typing import Literal

import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.specs import load_spec


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_all_of_github_is_listed_and_callable(acme: Acme, mode: Literal["legacy", "auto"]) -> None:
    """Ours: 1,223 operations through pages, one call as the document has it (OAS-1, OAS-3, RES-3, CAL-1)."""
    document = load_spec("github.json").decode()
    report = await acme.gateway.import_document(
        "acme", document, name="github", base_url=acme.upstream.url, prefix="gh_"
    )
    tools = {operation["tool"] for operation in report["operations"] if operation["tool"] is not None}
    listed: list[str] = []
    async with acme.gateway.client("acme", acme.key, mode) as client:
        cursor: str | None = None
        while True:
            page = await client.list_tools(cursor=cursor)
            listed += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            if cursor is None:
                break
        arguments = {"owner": "oct/o cat", "repo": "hello", "state": "open", "labels": "bug,ui", "per_page": 3}
        called = next(
            operation["tool"]
            for operation in report["operations"]
            if (operation["method"].upper(), operation["path"]) == ("GET", "/repos/{owner}/{repo}/issues")
        )
        result = await client.call_tool(called, arguments)

    assert len(report["operations"]) == 1223
    assert sum(report["counts"].values()) == 1223
    assert {name for name in listed if name.startswith("gh_")} == tools
    assert len(listed) == len(set(listed)) == len(tools) + 4
    assert result.is_error is False
    [seen] = acme.upstream.seen
    assert seen.method == "GET"
    assert seen.target == "/repos/oct%2Fo%20cat/hello/issues?state=open&labels=bug%2Cui&per_page=3"


@pytest.mark.parametrize("name", ["petstore-v3.yaml", "notion-31.json", "kubernetes-apps-v1.json"])
async def test_a_real_document_is_accounted_for(acme: Acme, name: str) -> None:
    """Ours: every operation is ok, degraded or skipped, and what is not skipped is listed (OAS-1, OAS-3)."""
    report = await acme.gateway.import_document(
        "acme", load_spec(name).decode(), name="real", base_url=acme.upstream.url, prefix="real_"
    )
    tools = (await acme.gateway.admin.get("/tenants/acme/tools", params={"limit": 200})).json()["items"]

    assert sum(report["counts"].values()) == len(report["operations"]) > 0
    made = {operation["tool"] for operation in report["operations"]} - {None}
    assert made == {tool["name"] for tool in tools if tool["name"].startswith("real_")}
