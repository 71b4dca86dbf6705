"""Sessions of the handshake era: opened, used, bound to their owner, ended."""

from typing import Any

import httpx
import pytest

from tests.behaviour.protocol.conftest import Acme
from tests.support.gateway import ACCEPT, running_gateway

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")


def _headers(key: str, session: str | None = None) -> dict[str, str]:
    sent = {"authorization": f"Bearer {key}", "accept": ACCEPT}
    return sent if session is None else {**sent, "mcp-session-id": session}


def _request(method: str, params: dict[str, Any] | None = None, request_id: int | str = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


async def _initialize(acme: Acme, key: str, revision: str = "2025-11-25", slug: str = "acme") -> httpx.Response:
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return await acme.gateway.http.post(f"/t/{slug}/mcp", json=_request("initialize", params), headers=_headers(key))


async def _session(acme: Acme, key: str, slug: str = "acme") -> str:
    return (await _initialize(acme, key, slug=slug)).headers["mcp-session-id"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_handshake_revision_is_negotiated(acme: Acme, revision: str) -> None:
    """MCP: the requested revision is answered when it is supported (SRV-1, CON-1)."""
    answer = await _initialize(acme, acme.key, revision)

    assert answer.json()["result"]["protocolVersion"] == revision
    assert answer.json()["result"]["capabilities"] == {"tools": {"listChanged": True}}
    assert all(0x21 <= ord(letter) <= 0x7E for letter in answer.headers["mcp-session-id"])
    assert len(answer.headers["mcp-session-id"]) >= 32


async def test_an_unknown_revision_is_answered_with_the_newest(acme: Acme) -> None:
    """MCP: a client that asks for something else is offered the newest handshake revision (SRV-1)."""
    assert (await _initialize(acme, acme.key, "1999-01-01")).json()["result"]["protocolVersion"] == "2025-11-25"


async def test_a_session_lives_from_initialize_to_delete(acme: Acme) -> None:
    """MCP: initialized, ping, list, call; after DELETE the session is unknown (SRV-1, CON-1)."""
    session = await _session(acme, acme.key)
    headers = _headers(acme.key, session)
    http = acme.gateway.http

    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    accepted = await http.post("/t/acme/mcp", json=initialized, headers=headers)
    assert (accepted.status_code, accepted.content) == (202, b"")
    pinged = await http.post("/t/acme/mcp", json=_request("ping", request_id="p-1"), headers=headers)
    assert pinged.json() == {"jsonrpc": "2.0", "id": "p-1", "result": {}}
    listed = await http.post("/t/acme/mcp", json=_request("tools/list"), headers=headers)
    assert len(listed.json()["result"]["tools"]) == 4

    assert (await http.delete("/t/acme/mcp", headers=headers)).status_code == 200
    gone = await http.post("/t/acme/mcp", json=_request("ping"), headers=headers)
    assert gone.status_code == 404


async def test_a_session_continues_at_another_replica(acme: Acme, database_url: str, redis_url: str) -> None:
    """Ours: a session is a record that any replica serves (SRV-1)."""
    session = await _session(acme, acme.key)
    async with running_gateway(database_url, redis_url, egress_allow=[acme.upstream.authority]) as other:
        answer = await other.http.post(
            "/t/acme/mcp",
            json=_request("tools/call", {"name": "get_pet", "arguments": {"id": 7}}),
            headers=_headers(acme.key, session),
        )
        ended = await other.http.delete("/t/acme/mcp", headers=_headers(acme.key, session))

    assert answer.json()["result"]["structuredContent"] == {"ok": True}
    assert ended.status_code == 200


@pytest.mark.parametrize("verb", ["POST", "DELETE"])
async def test_another_keys_session_is_unknown(acme: Acme, verb: str) -> None:
    """MCP: possession of a session id is no authentication (TEN-1, TEN-5)."""
    session = await _session(acme, acme.key)
    other_subject = await acme.gateway.create_key("acme")
    await acme.gateway.create_tenant("globex")
    foreign = await acme.gateway.create_key("globex")

    for slug, key in (("acme", other_subject), ("globex", foreign)):
        answer = await acme.gateway.http.request(
            verb, f"/t/{slug}/mcp", json=_request("ping"), headers=_headers(key, session)
        )
        assert answer.status_code == 404
    still = await acme.gateway.http.post("/t/acme/mcp", json=_request("ping"), headers=_headers(acme.key, session))
    assert still.status_code == 200


async def test_a_second_key_of_the_same_subject_continues_the_session(acme: Acme) -> None:
    """Ours: sessions bind to the subject, which survives the rotation of a key (TEN-2)."""
    first = await acme.gateway.create_key("acme", subject="alice")
    second = await acme.gateway.create_key("acme", subject="alice")
    session = await _session(acme, first)

    answer = await acme.gateway.http.post("/t/acme/mcp", json=_request("ping"), headers=_headers(second, session))

    assert answer.status_code == 200


async def test_a_session_id_of_the_clients_own_is_never_adopted(acme: Acme) -> None:
    """Ours: only the server makes session ids (TEN-5)."""
    answer = await acme.gateway.http.post(
        "/t/acme/mcp", json=_request("ping"), headers=_headers(acme.key, "chosen-by-the-client")
    )

    assert answer.status_code == 404


async def test_a_request_without_its_session_is_refused(acme: Acme) -> None:
    """MCP: 400 where the session header is required (CAL-5)."""
    answer = await acme.gateway.http.post("/t/acme/mcp", json=_request("tools/list"), headers=_headers(acme.key))

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_sessions_are_capped_per_tenant(acme: Acme) -> None:
    """Ours: one tenant cannot fill the session store (TEN-3)."""
    (await acme.gateway.admin.patch("/tenants/acme/policy", json={"limits": {"sessions": 2}})).raise_for_status()

    answers = [await _initialize(acme, acme.key) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].json()["error"]["code"] == 42900
