"""A gateway with one tenant and two upstreams that write down what they are asked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.gateway import RunningGateway
from tests.support.stand import Stand, database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.upstream import RecordingUpstream, Seen

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]

SLUG = "acme"


@dataclass(slots=True)
class OpenAPIBench:
    """The tenant, its key, and everything that talks to it."""

    gateway: RunningGateway
    upstreams: Sequence[RecordingUpstream]
    key: str
    imported: int = 0

    @property
    def upstream(self) -> RecordingUpstream:
        """The first of the two."""
        return self.upstreams[0]

    def seen(self) -> list[tuple[int, Seen]]:
        """Requests since the last call, with the number of the upstream."""
        found = [(number, seen) for number, upstream in enumerate(self.upstreams, 1) for seen in upstream.seen]
        for each in self.upstreams:
            each.seen.clear()
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
async def bench(stand: Stand) -> OpenAPIBench:
    """A tenant that may do everything, without a document."""
    await stand.gateway.create_tenant(SLUG)
    return OpenAPIBench(stand.gateway, stand.upstreams, await stand.gateway.create_key(SLUG))
