"""Sessions in foreign hands: every verb, with every credential that is not the owner's (security C4, TEN-1)."""

import json
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import pytest

from tests.support.gateway import ACCEPT, RunningGateway
from tests.support.primitives import add, text_resource, tool
from tests.support.replicas import until
from tests.support.stand import common_stand, database, gateway, own_stand, redis_url, stand, upstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

SCHEMA = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
ASKING = [{"ask": {"key": "ok", "message": "Really?", "schema": SCHEMA}, "as": "ok"}, {"return": {"text": "done"}}]


@dataclass(frozen=True, slots=True)
class World:
    """Two tenants with the same tools, three keys, and a session of the first."""

    gateway: RunningGateway
    owner: str
    colleague: str
    foreigner: str
    session: str

    def headers(self, key: str, session: str | None = None, **more: str) -> dict[str, str]:
        sent = {"authorization": f"Bearer {key}", "accept": ACCEPT, **more}
        return sent if session is None else {**sent, "mcp-session-id": session}


@pytest.fixture
async def world(gateway: RunningGateway) -> World:
    for slug in ("acme", "globex"):
        await gateway.create_tenant(slug)
        await add(gateway, slug, "tools", tool("danger", {"kind": "steps", "steps": ASKING}, safety="safe"))
        await add(gateway, slug, "resources", text_resource("note://1"))
    owner = await gateway.create_key("acme")
    colleague, foreigner = await gateway.create_key("acme"), await gateway.create_key("globex")
    session = await _open(gateway, "acme", owner)
    return World(gateway, owner, colleague, foreigner, session)


async def _open(gateway: RunningGateway, slug: str, key: str) -> str:
    params: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "t", "version": "1"},
    }
    answer = await gateway.http.post(
        f"/t/{slug}/mcp",
        json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        headers={"authorization": f"Bearer {key}", "accept": ACCEPT},
    )
    session: str = answer.headers["mcp-session-id"]
    return session


MESSAGES: tuple[dict[str, Any], ...] = (
    {"jsonrpc": "2.0", "id": 1, "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "danger", "arguments": {}}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
    {"jsonrpc": "2.0", "id": "x", "result": {"action": "accept"}},
)


async def test_a_foreign_session_takes_no_message(world: World) -> None:
    """Ours: with a foreign session's id every message is answered as if there were none (TEN-1, TEN-5)."""
    for slug, key in (("acme", world.colleague), ("globex", world.foreigner)):
        headers = [world.headers(key, session) for session in (world.session, "x" * 43)]
        for message in MESSAGES:
            stolen, unknown = [
                await world.gateway.http.post(f"/t/{slug}/mcp", json=message, headers=one) for one in headers
            ]

            assert stolen.status_code == unknown.status_code == 404, (slug, message)
            assert _reported(stolen) == _reported(unknown), (slug, message)


def _reported(answer: httpx.Response) -> dict[str, Any]:
    """An answer without what is new in each."""
    reported: dict[str, Any] = answer.json()
    del reported["error"]["data"]["correlation_id"]
    return reported


async def test_a_foreign_session_is_neither_read_nor_ended(world: World) -> None:
    """Ours: neither its stream, from any place, nor its end is available to another caller (TEN-1, TEN-5)."""
    http, ping = world.gateway.http, {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    places: tuple[dict[str, str], ...] = (
        {},
        {"last-event-id": "g/0-0/0"},
        {"last-event-id": "rabcdefgh12345678/0-1"},
    )
    for slug, key, status in (
        ("acme", world.colleague, 404),
        ("globex", world.foreigner, 404),
        ("acme", "mcpg_live_x", 401),
    ):
        for method in ("GET", "DELETE"):
            for place in places:
                headers = world.headers(key, world.session, **place)
                answer = await http.request(method, f"/t/{slug}/mcp", headers=headers)
                assert answer.status_code == status, (slug, method, place)
            still = await http.post("/t/acme/mcp", json=ping, headers=world.headers(world.owner, world.session))
            assert still.status_code == 200, (slug, method)


@pytest.mark.parametrize("path", ["/t/globex/mcp", "/t/acme/other/mcp"])
async def test_a_session_is_good_at_its_own_url_only(world: World, path: str) -> None:
    """Ours: neither another tenant's URL nor another profile's takes it (TEN-1)."""
    await add(world.gateway, "acme", "profiles", {"name": "other"})
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    answer = await world.gateway.http.post(path, json=ping, headers=world.headers(world.owner, world.session))

    assert answer.status_code == 404


async def test_two_session_headers_are_refused(world: World) -> None:
    """Ours: a reader of the first header and a reader of the last must not see two sessions (TEN-5)."""
    other = await _open(world.gateway, "acme", world.owner)
    headers = [*world.headers(world.owner).items(), ("mcp-session-id", world.session), ("mcp-session-id", other)]
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

    answer = await world.gateway.http.post("/t/acme/mcp", json=ping, headers=headers)

    assert answer.status_code == 400


async def _endpoint(lines: Any) -> str:
    """Endpoint for messages that the stream of HTTP+SSE names."""
    async for line in lines:
        if line.startswith("data: "):
            return str(line[6:])
    raise AssertionError("no endpoint")


async def test_the_two_transports_keep_their_sessions_apart(world: World) -> None:
    """Ours: a session of the one is unknown to the other (TEN-5)."""
    http, ping = world.gateway.http, {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with http.stream("GET", "/t/acme/sse", headers=world.headers(world.owner)) as stream:
        path = await _endpoint(stream.aiter_lines())
        session = path.rpartition("=")[2]
        there = await http.post("/t/acme/mcp", json=ping, headers=world.headers(world.owner, session))
        here = await http.post(
            f"/t/acme/messages?session_id={world.session}", json=ping, headers=world.headers(world.owner)
        )
        listening = await http.get("/t/acme/mcp", headers=world.headers(world.owner, session))

    assert path.startswith("/t/acme/messages?session_id=")
    assert (there.status_code, here.status_code, listening.status_code) == (404, 404, 404)


async def test_messages_of_the_old_transport_need_their_owner(world: World) -> None:
    """Ours: the id in the URL is no credential (TEN-1, TEN-5)."""
    http, ping = world.gateway.http, {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with http.stream("GET", "/t/acme/sse", headers=world.headers(world.owner)) as stream:
        lines = stream.aiter_lines()
        path = await _endpoint(lines)
        foreign = path.replace("/acme/", "/globex/")
        refused = [
            await http.post(path, json=ping, headers=world.headers(world.colleague)),
            await http.post(foreign, json=ping, headers=world.headers(world.foreigner)),
            await http.post(f"{path}&session_id={'x' * 43}", json=ping, headers=world.headers(world.owner)),
            await http.post("/t/acme/messages", json=ping, headers=world.headers(world.owner)),
        ]
        anonymous = await http.post(path, json=ping)
        taken = await http.post(path, json=ping, headers=world.headers(world.owner))
        with anyio.fail_after(10):
            answered = json.loads(await _endpoint(lines))

    assert [answer.status_code for answer in refused] == [404, 404, 404, 404]
    assert (anonymous.status_code, taken.status_code, taken.content) == (401, 202, b"")
    assert answered == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_with_its_stream_an_old_session_ends(world: World) -> None:
    """Ours: no caller can continue a session whose stream is gone (RES-6)."""
    http, ping = world.gateway.http, {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with http.stream("GET", "/t/acme/sse", headers=world.headers(world.owner)) as stream:
        path = await _endpoint(stream.aiter_lines())

    async def is_gone() -> bool:
        return (await http.post(path, json=ping, headers=world.headers(world.owner))).status_code == 404

    await until(is_gone, seconds=10)


async def test_each_path_takes_its_own_methods(world: World) -> None:
    """RFC 9110: 405 names the allowed methods (SRV-1)."""
    for method, path, allowed in (
        ("PUT", "/t/acme/mcp", "GET, POST, DELETE"),
        ("POST", "/t/acme/sse", "GET"),
        ("DELETE", "/t/acme/sse", "GET"),
        ("GET", "/t/acme/messages", "POST"),
    ):
        answer = await world.gateway.http.request(method, path, headers=world.headers(world.owner))

        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), (method, path)


async def test_one_subject_cannot_take_all_sessions(world: World) -> None:
    """Ours: the last tenth of a tenant's sessions is left to its other keys (TEN-3)."""
    policy = {"limits": {"sessions": 10}}
    (await world.gateway.admin.patch("/tenants/acme/policy", json=policy)).raise_for_status()
    statuses: list[int] = []
    params: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    for key in (*[world.owner] * 9, world.colleague):
        answer = await world.gateway.http.post("/t/acme/mcp", json=body, headers=world.headers(key))
        statuses.append(answer.status_code)

    assert statuses == [200] * 8 + [429, 200]
