"""Two replicas with one tenant, its key, and a recording upstream behind them.

The processes are shared by all tests here, which takes seconds off each of them; a tenant is a test's own, and
whatever a test killed or stopped is brought back before the next.
"""

import itertools
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

import pytest

from tests.support.documents import pets
from tests.support.pair import running_pair
from tests.support.replicas import Replicas
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream, recording_upstream


@dataclass(frozen=True, slots=True)
class Acme:
    """A tenant with the pets document, and everything that talks to it."""

    replicas: Replicas
    upstream: RecordingUpstream
    key: str
    slug: str


@pytest.fixture(scope="package")
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture(scope="package")
async def shared_replicas(
    servers: TestServers, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Replicas]:
    """Two gateway processes over one database and one Redis, which may call the recording upstream."""
    async with running_pair(servers, upstream, tmp_path_factory.mktemp("replicas")) as started:
        yield started


@pytest.fixture(scope="package")
def slugs() -> Iterator[str]:
    """Names that no other test has taken."""
    return (f"acme-{number}" for number in itertools.count(1))


@pytest.fixture
async def replicas(shared_replicas: Replicas) -> AsyncGenerator[Replicas]:
    """Both replicas, up and well; a test that fails shows what they logged during it."""
    await shared_replicas.heal()
    with shared_replicas.logs_shown():
        yield shared_replicas


@pytest.fixture
async def acme(replicas: Replicas, upstream: RecordingUpstream, slugs: Iterator[str]) -> Acme:
    """A tenant with four tools, made at the first replica."""
    slug = next(slugs)
    gateway = replicas.a.gateway
    await gateway.create_tenant(slug)
    await gateway.import_document(slug, pets(upstream.url))
    return Acme(replicas, upstream, await gateway.create_key(slug), slug)
