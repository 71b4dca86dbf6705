"""Sessions of the handshake era as bytes on the wire, for what the SDK's client would not send or not show."""

from dataclasses import dataclass
from typing import Any

import httpx

from tests.support.gateway import ACCEPT, RunningGateway


@dataclass(frozen=True, slots=True)
class Session:
    """One open session, and the result of its initialization."""

    gateway: RunningGateway
    place: str
    key: str
    id: str
    opened: dict[str, Any]

    async def send(self, method: str, params: dict[str, Any] | None = None) -> httpx.Response:
        """The whole answer to one request."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            body["params"] = params
        headers = {"authorization": f"Bearer {self.key}", "accept": ACCEPT, "mcp-session-id": self.id}
        return await self.gateway.http.post(f"/t/{self.place}/mcp", json=body, headers=headers)

    async def rpc(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The JSON-RPC answer to one request."""
        answer: dict[str, Any] = (await self.send(method, params)).json()
        return answer


async def open_session(
    gateway: RunningGateway, place: str, key: str, *, version: str = "2025-11-25", **capabilities: Any
) -> Session:
    """A session of a tenant (`slug`, or `slug/profile`) in this revision."""
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}
    answer = await gateway.http.post(
        f"/t/{place}/mcp",
        json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        headers={"authorization": f"Bearer {key}", "accept": ACCEPT},
    )
    answer.raise_for_status()
    return Session(gateway, place, key, answer.headers["mcp-session-id"], answer.json()["result"])
