"""The pair of replicas that the tests of a package or module share, over a database of their own."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.replicas import Replicas, running_replicas
from tests.support.servers import TestServers
from tests.support.upstream import RecordingUpstream


@asynccontextmanager
async def running_pair(
    servers: TestServers, upstream: RecordingUpstream, folder: Path, **variables: str
) -> AsyncGenerator[Replicas]:
    """Two gateway processes over an empty database and an empty Redis, which may call the upstream."""
    with servers.database() as database, servers.held_redis() as redis_url:
        reachable = [upstream.authority]
        async with running_replicas(
            database.app_url, redis_url, folder, egress_allow=reachable, **variables
        ) as started:
            yield started
