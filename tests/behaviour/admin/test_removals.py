"""Updates of a source that would remove tools."""

from typing import Any

import pytest

from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.upstream import RecordingUpstream

PATH = "/tenants/acme/sources/pets"


def _less(url: str) -> dict[str, Any]:
    document = pets(url)
    del document["paths"]["/pets/{id}"]
    return document


@pytest.fixture
async def acme(gateway: RunningGateway, upstream: RecordingUpstream) -> RunningGateway:
    """A tenant with four tools, one of which was called."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url), name="pets")
    key = await gateway.create_key("acme")
    called = await gateway.rpc("acme", key, "tools/call", {"name": "get_pet", "arguments": {"id": 1}})
    assert called.json()["result"]["isError"] is False
    return gateway


async def _tools(gateway: RunningGateway) -> set[str]:
    return {item["name"] for item in (await gateway.admin.get("/tenants/acme/tools")).json()["items"]}


async def test_an_update_removes_tools_only_where_it_may(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: a document that lost a path takes no tool from agents unasked; recent calls are counted (OAS-6)."""
    before = (await acme.admin.get(PATH)).headers["etag"]
    less = {"document": _less(upstream.url)}
    refusals = [
        await acme.admin.put(PATH, json=less),
        await acme.admin.patch(PATH, json=less),
        await acme.admin.patch(PATH, json={"exclude": [{"paths": ["/pets/{id}"]}]}),
    ]
    tried = await acme.admin.put(PATH, json={**less, "dry_run": True})

    for refused in refusals:
        problem = refused.json()
        assert (refused.status_code, problem["code"]) == (409, "source.removals_refused")
        assert "2 tools, 1 of them called in the last 7 days" in problem["detail"]
        assert [error["reason"] for error in problem["errors"]] == [
            "get_pet (GET /pets/{id}) would be removed; 1 call in the last 7 days",
            "delete_pet (DELETE /pets/{id}) would be removed; 0 calls in the last 7 days",
        ]
    assert {change["tool"]: change["recent_calls"] for change in tried.json()["changes"]["removed"]} == {
        "get_pet": 1,
        "delete_pet": 0,
    }
    assert len(await _tools(acme)) == 4
    assert (await acme.admin.get(PATH)).headers["etag"] == before

    done = await acme.admin.put(PATH, json={**less, "allow_removals": True})
    assert done.status_code == 200
    assert len(done.json()["changes"]["removed"]) == 2
    assert await _tools(acme) == {"list_pets", "create_pet"}


async def test_other_updates_need_no_permission(acme: RunningGateway, upstream: RecordingUpstream) -> None:
    """Ours: adding, changing and renaming tools removes none (OAS-6)."""
    document = pets(upstream.url, title="Other")
    document["paths"]["/new"] = {"get": {"operationId": "added", "responses": {"200": {"description": "ok"}}}}

    assert (await acme.admin.put(PATH, json={"document": document})).status_code == 200
    assert (await acme.admin.patch(PATH, json={"prefix": "my_"})).status_code == 200
    assert (await acme.admin.patch(PATH, json={"expose": "both"})).status_code == 200
