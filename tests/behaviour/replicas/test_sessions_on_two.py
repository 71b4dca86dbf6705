"""Sessions of the handshake era over two replicas: opened at one, used at the other, outliving either."""

from typing import Any

import httpx2
import pytest

from tests.behaviour.replicas.conftest import Acme
from tests.support.gateway import ACCEPT
from tests.support.replicas import Replica, tool_names, until

CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


async def _ask(acme: Acme, replica: Replica, method: str, session: str | None = None) -> httpx2.Response:
    """One request at one replica; DELETE ends the session."""
    headers = {"accept": ACCEPT} | ({} if session is None else {"mcp-session-id": session})
    path = f"/t/{acme.slug}/mcp"
    async with acme.replicas.http(acme.key, to=replica) as http:
        if method == "DELETE":
            return await http.request("DELETE", path, headers=headers)
        params: dict[str, Any] = CLIENT if method == "initialize" else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await http.post(path, json=body, headers=headers)


async def _open(acme: Acme, replica: Replica) -> str:
    session: str = (await _ask(acme, replica, "initialize")).headers["mcp-session-id"]
    return session


async def test_a_session_opened_at_a_outlives_a(acme: Acme) -> None:
    """Ours: a killed replica takes no session with it (SRV-1)."""
    a, b = acme.replicas.a, acme.replicas.b
    session = await _open(acme, a)
    for replica in (b, a, b):
        assert (await _ask(acme, replica, "tools/list", session)).status_code == 200
    a.kill()
    assert len((await _ask(acme, b, "tools/list", session)).json()["result"]["tools"]) == 4
    await a.start()
    assert (await _ask(acme, a, "ping", session)).status_code == 200


async def test_the_sdks_client_continues_when_a_replica_is_killed(acme: Acme) -> None:
    """Ours: a client of the handshake era does not notice which replica is left (SRV-1)."""
    async with acme.replicas.client(acme.slug, acme.key, "legacy") as client:
        before = await tool_names(client)
        acme.replicas.a.kill()
        assert await tool_names(client) == before
        assert (await client.call_tool("get_pet", {"id": 7})).structured_content == {"ok": True}


@pytest.mark.parametrize("is_lost", [False, True], ids=["told", "lost"])
async def test_a_session_ended_at_b_is_unknown_at_a(acme: Acme, is_lost: bool) -> None:
    """MCP: after DELETE the session is answered with 404, at every replica, event or not (SRV-1, CON-1)."""
    a, b = acme.replicas.a, acme.replicas.b
    session = await _open(acme, a)
    assert (await _ask(acme, a, "ping", session)).status_code == 200

    async def is_unknown() -> bool:
        return (await _ask(acme, a, "ping", session)).status_code == 404

    if is_lost:
        with b.muted():
            assert (await _ask(acme, b, "DELETE", session)).status_code in {200, 503}
            with a.hurrying():
                await until(is_unknown, seconds=15)
    else:
        assert (await _ask(acme, b, "DELETE", session)).status_code == 200
        await until(is_unknown)
    assert (await _ask(acme, b, "ping", session)).status_code == 404
