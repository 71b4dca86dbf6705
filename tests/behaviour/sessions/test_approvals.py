"""A policy that wants another person's approval before a call is made, in both eras and on two replicas."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import mcp_types as types
import pytest
from mcp import Client

from tests.behaviour.sessions.conftest import Talk, furnish
from tests.support.documents import pets
from tests.support.replicas import Mode, Replicas
from tests.support.serving import clients_of
from tests.support.upstream import RecordingUpstream

ERAS: tuple[Mode, ...] = ("legacy", "2026-07-28")
DELETE = ("delete_pet", {"id": 7})


@pytest.fixture(scope="module")
async def common_slug(shared_replicas: Replicas, upstream: RecordingUpstream) -> str:
    """A tenant whose deletions need an approval."""
    await shared_replicas.heal()
    gateway = shared_replicas.a.gateway
    await furnish(gateway, "approving", upstream, ())
    answer = await gateway.admin.patch("/tenants/approving/policy", json={"dangerous": "approve"})
    assert answer.status_code == 200, answer.text
    return "approving"


@dataclass(slots=True)
class Office:
    """The admin API of the second replica, for persons who decide."""

    talk: Talk
    admin: httpx.AsyncClient

    async def listed(self, **wanted: str) -> list[dict[str, Any]]:
        answer = (await self.admin.get(f"/tenants/{self.talk.slug}/approvals", params=wanted)).raise_for_status()
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    async def pending(self) -> dict[str, Any]:
        """The only pending approval, once there is one."""
        with anyio.fail_after(10):
            while not (found := await self.listed(state="pending")):  # noqa: ASYNC110  # the caller is another process
                await anyio.sleep(0.02)
        [only] = found
        return only

    async def decide(self, approval: str, verdict: str = "approve", comment: str = "") -> dict[str, Any]:
        path = f"/tenants/{self.talk.slug}/approvals/{approval}/{verdict}"
        answer = await self.admin.post(path, json={"comment": comment} if comment else {})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def shown(self, approval: str) -> dict[str, Any]:
        answer = await self.admin.get(f"/tenants/{self.talk.slug}/approvals/{approval}")
        found: dict[str, Any] = answer.raise_for_status().json()
        return found


@pytest.fixture
async def office(talk: Talk) -> AsyncGenerator[Office]:
    """Decisions at the second replica, by a key that only approves."""
    gateway = talk.gateway
    key = await gateway.create_key(talk.slug, "approve", subject="anna")
    async with clients_of(talk.replicas.b.gateway.url, key) as (admin, _):
        made = Office(talk, admin)
        yield made
        for left in await made.listed(state="pending"):  # the next test expects its own only
            await made.decide(left["id"], "deny")


async def _delete(client: Client, pet: int) -> types.CallToolResult:
    return await client.call_tool("delete_pet", {"id": pet})


def _facts(result: types.CallToolResult) -> dict[str, Any]:
    assert result.is_error, result
    facts: dict[str, Any] = (result.meta or {})["gateway/approval"]
    return facts


async def test_a_call_of_2026_attaches_to_its_approval_and_runs_once_granted(talk: Talk, office: Office) -> None:
    """Ours: pending, pending, granted, done; the upstream sees one request (SAF-3)."""
    async with talk.replicas.client(talk.slug, talk.key, "2026-07-28") as client:
        first = _facts(await _delete(client, 70))
        again = _facts(await _delete(client, 70))
        assert first == again
        assert (first["state"], first["id"][:4]) == ("pending", "apr_")
        assert talk.upstream.seen == []

        shown = await office.shown(first["id"])
        assert shown["request"]["method"] == "DELETE"
        assert shown["request"]["url"].endswith("/v1/pets/70")
        assert any("Deletes /v1/pets/70 at 127.0.0.1" in fact for fact in shown["warnings"])
        await office.decide(first["id"], comment="fine")
        done = await _delete(client, 70)

    assert not done.is_error
    assert [(seen.method, seen.target) for seen in talk.upstream.seen] == [("DELETE", "/v1/pets/70")]
    ended = await office.shown(first["id"])
    assert (ended["state"], ended["outcome"], ended["comment"]) == ("done", "ok", "fine")
    assert ended["decided_by"].startswith("key:")
    wanted = await office.listed(search="/V1/PETS/70", state="done", tool="delete_pet")
    assert [one["id"] for one in wanted] == [first["id"]]
    assert await office.listed(search="/v1/pets/70", state="denied") == await office.listed(search="/pets/99999") == []


async def test_a_session_waits_and_its_result_is_the_calls(talk: Talk, office: Office) -> None:
    """Ours: in a session the call waits with progress messages, and goes on when the decision comes (SAF-3)."""
    notified: list[str | None] = []
    results: list[types.CallToolResult] = []
    asked: dict[str, Any] = {}

    async def note(progress: float, total: float | None, message: str | None) -> None:
        notified.append(message)

    async with talk.replicas.client(talk.slug, talk.key, "legacy") as client, anyio.create_task_group() as group:

        async def call() -> None:
            results.append(await client.call_tool("delete_pet", {"id": 71}, progress_callback=note))

        group.start_soon(call)
        asked = await office.pending()
        assert talk.upstream.seen == []
        await office.decide(asked["id"])

    [result] = results
    assert not result.is_error
    assert [seen.target for seen in talk.upstream.seen] == ["/v1/pets/71"]
    assert notified[0] == f"waiting for the approval {asked['id']}"


async def test_a_denial_ends_the_wait_and_holds_for_equal_calls(talk: Talk, office: Office) -> None:
    """Ours: the caller reads the reason; an equal call is not asked again at once (SAF-3)."""
    results: list[types.CallToolResult] = []
    async with talk.replicas.client(talk.slug, talk.key, "legacy") as client, anyio.create_task_group() as group:

        async def call() -> None:
            results.append(await _delete(client, 72))

        group.start_soon(call)
        asked = await office.pending()
        await office.decide(asked["id"], "deny", comment="not this pet")
    async with talk.replicas.client(talk.slug, talk.key, "2026-07-28") as client:
        results.append(await _delete(client, 72))

    for result in results:
        assert _facts(result)["state"] == "denied"
        assert isinstance(result.content[0], types.TextContent)
        assert "not this pet" in result.content[0].text
    assert talk.upstream.seen == []


async def _activate(talk: Talk, document: dict[str, Any]) -> None:
    """Propose a document, and activate the proposal."""
    path = f"/tenants/{talk.slug}/sources/api"
    proposed = await talk.gateway.admin.post(f"{path}/proposal", json={"document": document})
    assert proposed.is_success, proposed.text
    activated = await talk.gateway.admin.post(f"{path}/versions/{proposed.json()['version']}/activate", json={})
    assert activated.is_success, activated.text


async def test_an_activation_ends_the_approvals_of_tools_that_it_changes(talk: Talk, office: Office) -> None:
    """Ours: an approval for another definition never runs; calls of other tools continue (OAS-6, SAF-3)."""
    document, results = pets(talk.upstream.url), list[types.CallToolResult]()
    asked: dict[str, Any] = {}

    async def call(client: Client, pet: int) -> None:
        results.append(await _delete(client, pet))

    async with talk.replicas.client(talk.slug, talk.key, "legacy") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(call, client, 74)
            asked = await office.pending()
            document["paths"]["/pets"]["get"]["summary"] = "Lists pets"
            await _activate(talk, document)
            await office.decide(asked["id"])
        async with anyio.create_task_group() as group:
            group.start_soon(call, client, 75)
            asked = await office.pending()
            document["servers"][0]["url"] = f"{talk.upstream.url}/v2"
            await _activate(talk, document)

    assert (results[0].is_error, _facts(results[1])["state"]) == (False, "superseded")
    assert isinstance(results[1].content[0], types.TextContent)
    assert "is superseded; nothing was done. Call again" in results[1].content[0].text
    late = await office.admin.post(f"/tenants/{talk.slug}/approvals/{asked['id']}/approve", json={})
    assert late.status_code == 409
    async with talk.replicas.client(talk.slug, talk.key, "2026-07-28") as client:
        granted = _facts(await _delete(client, 75))["id"]
        await office.decide(granted)
        path = f"/tenants/{talk.slug}/sources/api/versions/1/activate"
        (await talk.gateway.admin.post(path, json={})).raise_for_status()
        again = _facts(await _delete(client, 75))
    assert (await office.shown(granted))["state"] == "superseded"
    assert (again["state"], again["id"] in {granted, asked["id"]}) == ("pending", False)
    assert [seen.target for seen in talk.upstream.seen] == ["/v1/pets/74"]


async def test_the_removal_of_a_source_ends_its_approvals(talk: Talk, office: Office) -> None:
    """Ours: a call that waits at another replica ends at once; its approval cannot be granted any more (SAF-3)."""
    results, asked = list[types.CallToolResult](), list[str]()
    draft = {"name": "gone", "document": pets(talk.upstream.url), "prefix": "gone"}
    sources = f"/tenants/{talk.slug}/sources"
    (await talk.gateway.admin.post(sources, json=draft)).raise_for_status()

    async def call(client: Client) -> None:
        results.append(await client.call_tool("gone_delete_pet", {"id": 76}))

    async with talk.replicas.client(talk.slug, talk.key, "legacy") as client, anyio.create_task_group() as group:
        group.start_soon(call, client)
        asked.append((await office.pending())["id"])
        (await talk.replicas.b.gateway.admin.delete(f"{sources}/gone")).raise_for_status()

    assert _facts(results[0])["state"] == "superseded"
    assert (await office.shown(asked[0]))["state"] == "superseded"


async def test_the_requester_does_not_decide(talk: Talk, office: Office) -> None:
    """Ours: a second key of the same subject is the same person; an admin without `approve` reads (SAF-3)."""
    agent = await talk.gateway.create_key(talk.slug, "mcp", subject="bot")
    own = await talk.gateway.create_key(talk.slug, "approve", subject="bot")
    admin = await talk.gateway.create_key(talk.slug, "admin", subject="boss")
    async with talk.replicas.client(talk.slug, agent, "2026-07-28") as client:
        asked = _facts(await _delete(client, 73))
    path = f"/tenants/{talk.slug}/approvals/{asked['id']}"
    for key in (own, admin):
        async with clients_of(talk.gateway.url, key) as (api, _):
            assert (await api.get(path)).status_code == 200
            assert (await api.post(f"{path}/approve", json={})).status_code == 403
    assert (await office.shown(asked["id"]))["state"] == "pending"
