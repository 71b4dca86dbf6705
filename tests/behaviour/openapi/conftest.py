"""A gateway with one tenant and two upstreams that write down what they are asked."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.gateway import RunningGateway, running_gateway
from tests.support.upstream import RecordingUpstream, Seen, recording_upstream

SLUG = "acme"


@dataclass(slots=True)
class Desk:
    """The tenant, its key, and everything that talks to it."""

    gateway: RunningGateway
    upstreams: tuple[RecordingUpstream, RecordingUpstream]
    key: str
    imported: int = 0

    @property
    def upstream(self) -> RecordingUpstream:
        """The first of the two."""
        return self.upstreams[0]

    def seen(self) -> list[tuple[int, Seen]]:
        """What was asked since the last time, with the number of the upstream."""
        found = [(number, seen) for number, upstream in enumerate(self.upstreams, 1) for seen in upstream.seen]
        for upstream in self.upstreams:
            upstream.seen.clear()
        return found

    async def import_document(self, document: object, credentials: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The report of a document that is now the tenant's only one."""
        if self.imported:
            gone = await self.gateway.admin.delete(f"/tenants/{SLUG}/sources/api{self.imported}")
            assert gone.status_code < 300, gone.text
        self.imported += 1
        more = {"credentials": dict(credentials)} if credentials else {}
        return await self.gateway.import_document(SLUG, document, name=f"api{self.imported}", **more)

    async def tools(self) -> dict[str, dict[str, Any]]:
        """The listed tools by name."""
        answer = await self.gateway.rpc(SLUG, self.key, "tools/list", {})
        return {tool["name"]: tool for tool in answer.json()["result"]["tools"]}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a call."""
        answer = await self.gateway.rpc(SLUG, self.key, "tools/call", {"name": name, "arguments": dict(arguments)})
        message = json.loads(answer.text.split("data:")[-1]) if answer.text.startswith("event:") else answer.json()
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result


@pytest.fixture
async def desk(database_url: str, redis_url: str) -> AsyncGenerator[Desk]:
    """A tenant that may do everything, without a document."""
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(recording_upstream())
        second = await stack.enter_async_context(recording_upstream())
        allowed = [first.authority, second.authority]
        gateway = await stack.enter_async_context(running_gateway(database_url, redis_url, egress_allow=allowed))
        await gateway.create_tenant(SLUG)
        policy = {"moderate": "allow", "dangerous": "allow"}
        (await gateway.admin.put(f"/tenants/{SLUG}/policy", json=policy)).raise_for_status()
        yield Desk(gateway, (first, second), await gateway.create_key(SLUG))
