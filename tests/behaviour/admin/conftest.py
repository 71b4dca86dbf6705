"""A gateway that may fetch from, and call, one recording upstream; and the admin document it serves."""

from collections.abc import AsyncGenerator

import pytest

from tests.support.gateway import RunningGateway, running_gateway
from tests.support.upstream import RecordingUpstream, recording_upstream


@pytest.fixture
async def upstream() -> AsyncGenerator[RecordingUpstream]:
    """An upstream that writes down what it is asked."""
    async with recording_upstream() as started:
        yield started


@pytest.fixture
async def gateway(database_url: str, redis_url: str, upstream: RecordingUpstream) -> AsyncGenerator[RunningGateway]:
    """A gateway without tenants."""
    async with running_gateway(database_url, redis_url, egress_allow=[upstream.authority]) as started:
        yield started
