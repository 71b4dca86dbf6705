"""Servers on standard streams: of documents in this process, and bridges to a running gateway."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from gateway.app.local.documents import LocalDocument, LocalOptions, compile_all
from gateway.app.local.server import build_local_server
from gateway.cli.stdio.bridge import Bridge
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.sources import Exposure
from gateway.domain.tenancy.policy import Policy
from gateway.protocol.stdio.streams import StdioStreams
from gateway.upstream.client import UpstreamClient
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.stand import database, gateway, own_stand, redis_url, stand, upstream
from tests.support.stand import package_stand as common_stand
from tests.support.stdio import RawClient, raw_client
from tests.support.upstream import RecordingUpstream

__all__ = ["common_stand", "database", "gateway", "own_stand", "redis_url", "stand", "upstream"]


@asynccontextmanager
async def documents_client(
    *documents: LocalDocument,
    upstream: RecordingUpstream,
    options: LocalOptions | None = None,
    policy: Policy | None = None,
) -> AsyncGenerator[RawClient]:
    """A client of a server of documents, which may call the upstream."""
    wanted = options or LocalOptions()
    async with TaskSupervisor() as tasks, UpstreamClient(egress_allow=[upstream.authority]) as sender:
        sources = await compile_all(documents, wanted, sender)
        server = build_local_server(sources, wanted.expose, policy or Policy(), upstream=sender, spawn=tasks.spawn)
        async with raw_client(server.serve) as client:
            yield client


def pets_document(upstream: RecordingUpstream, *, name: str = "pets", prefix: str | None = None) -> LocalDocument:
    """The pets document."""
    return LocalDocument(name=name, place=name, content=json.dumps(pets(upstream.url)).encode(), prefix=prefix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """The tenant `acme` with the pets document."""

    gateway: RunningGateway
    upstream: RecordingUpstream
    key: str

    @property
    def url(self) -> str:
        """Its MCP URL."""
        return f"{self.gateway.url}/t/acme/mcp"

    @asynccontextmanager
    async def bridged(self, *, key: str | None = None, url: str | None = None) -> AsyncGenerator[RawClient]:
        """A client of a bridge to the tenant."""

        async def serve(streams: StdioStreams) -> None:
            await Bridge(url or self.url, key or self.key, streams).serve()

        async with raw_client(serve) as client:
            yield client


@pytest.fixture
async def acme(gateway: RunningGateway, upstream: RecordingUpstream) -> Tenant:
    """The tenant."""
    await gateway.create_tenant("acme")
    await gateway.import_document("acme", pets(upstream.url))
    return Tenant(gateway=gateway, upstream=upstream, key=await gateway.create_key("acme"))


@pytest.fixture
def pets_file(tmp_path: Path, upstream: RecordingUpstream) -> Path:
    """The pets document on disk."""
    path = tmp_path / "pets.json"
    path.write_text(json.dumps(pets(upstream.url)))
    return path


QUERY = LocalOptions(expose=Exposure.QUERY)
