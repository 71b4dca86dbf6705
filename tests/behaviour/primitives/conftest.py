"""Two replicas that have the almanac's primitives of code, and a tenant of each test's own."""

import itertools
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.primitives import add
from tests.support.replicas import Replicas, running_replicas
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream

ALMANAC = Path(__file__).parents[3] / "examples" / "almanac"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant on two replicas, and the upstream that its handlers may call."""

    replicas: Replicas
    upstream: RecordingUpstream
    key: str
    slug: str

    async def add(self, nouns: str, body: dict[str, Any]) -> dict[str, Any]:
        """Store a primitive through the first replica."""
        return await add(self.replicas.a.gateway, self.slug, nouns, body)

    async def rpc(self, method: str, params: dict[str, Any] | None = None, *, profile: str | None = None) -> Any:
        """Response of the second replica to a request of 2026-07-28."""
        place = self.slug if profile is None else f"{self.slug}/{profile}"
        named = {"mcp_name": params["uri"]} if params and method == "resources/read" else {}
        return (await self.replicas.b.gateway.rpc(place, self.key, method, params, **named)).json()


@pytest.fixture(scope="package")
def almanac(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", str(folder), str(ALMANAC)]
    subprocess.run(command, check=True, timeout=120)
    return folder


@pytest.fixture(scope="package")
async def primitives_upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="package")
async def shared_replicas(
    servers: TestServers,
    primitives_upstream: RecordingUpstream,
    almanac: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[Replicas]:
    """Two gateway processes that import the almanac when they start."""
    extras = {
        "extra_tools": "almanac.primitives:TOOLS",
        "extra_resources": "almanac.primitives:RESOURCES",
        "extra_prompts": "almanac.primitives:PROMPTS",
    }
    with servers.database() as database, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(almanac))
        async with running_replicas(
            database.app_url,
            servers.empty_redis(),
            tmp_path_factory.mktemp("replicas"),
            egress_allow=[primitives_upstream.authority],
            **extras,
        ) as started:
            yield started


@pytest.fixture(scope="package")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"tenant-{number}" for number in itertools.count(1))


@pytest.fixture
async def tenant(shared_replicas: Replicas, primitives_upstream: RecordingUpstream, slugs: Iterator[str]) -> Tenant:
    """A tenant with a key, and nothing of its own yet."""
    primitives_upstream.seen.clear()
    primitives_upstream.status, primitives_upstream.body = 200, b'{"ok":true}'
    primitives_upstream.content_type = "application/json"
    slug = next(slugs)
    gateway = shared_replicas.a.gateway
    await gateway.create_tenant(slug)
    return Tenant(shared_replicas, primitives_upstream, await gateway.create_key(slug), slug)
