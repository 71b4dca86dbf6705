"""Leases of attachments, as two replicas take and lose them in Redis."""

import secrets
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.redis.event_bus import EventBus
from gateway.redis.live.leases import AttachmentLeases, SourceKey
from tests.integration.redis.conftest import ACME, GLOBEX, SECRET

SHORT_S = 0.2


@dataclass(frozen=True)
class Pair:
    """Two replicas that share the leases, and a third view whose leases end soon."""

    here: AttachmentLeases
    there: AttachmentLeases
    brief: AttachmentLeases
    names: tuple[str, str]


@pytest.fixture
async def pair(redis_url: str) -> AsyncGenerator[Pair]:
    """Two replicas in a namespace of their own."""
    space = secrets.token_hex(4)
    async with (
        EventBus(redis_url, secret=SECRET, namespace=space) as here,
        EventBus(redis_url, secret=SECRET, namespace=space) as there,
    ):
        brief = AttachmentLeases(here, lease_s=SHORT_S)
        yield Pair(AttachmentLeases(here), AttachmentLeases(there), brief, (here.replica, there.replica))


def key(tenant: TenantId = ACME, source: str = "liv_1") -> SourceKey:
    return SourceKey(tenant, LiveSourceId(source))


async def test_one_replica_takes_a_source(pair: Pair) -> None:
    """DYN-1: a source that is due is taken once, and its holder is known to the others."""
    await pair.here.add([key()])
    assert await pair.there.take(10) == [key()]
    assert await pair.here.take(10) == []
    assert await pair.here.holder(key()) == pair.names[1]
    assert await pair.there.renew([key()]) == []
    assert await pair.here.renew([key()]) == [key()]


async def test_sources_of_equal_names_are_two(pair: Pair) -> None:
    """DYN-2: the tenant is part of the key (TEN-1)."""
    await pair.here.add([key(ACME), key(GLOBEX)])
    assert set(await pair.here.take(10)) == {key(ACME), key(GLOBEX)}
    await pair.here.release(key(ACME), due_in_s=None)
    assert await pair.here.holder(key(ACME)) is None
    assert await pair.here.holder(key(GLOBEX)) == pair.names[0]


async def test_a_lease_that_is_not_renewed_ends(pair: Pair) -> None:
    """DYN-1: the source of a crashed replica is due again, and the old holder learns that it lost it."""
    await pair.brief.add([key()])
    assert await pair.brief.take(1) == [key()]
    with anyio.fail_after(10):
        while not await pair.there.take(1):  # noqa: ASYNC110
            await anyio.sleep(0.02)
    assert await pair.brief.renew([key()]) == [key()]
    await pair.brief.release(key(), due_in_s=0)
    assert await pair.there.holder(key()) == pair.names[1], "only the holder may give up a lease"


async def test_a_released_source_waits_for_its_next_attempt(pair: Pair) -> None:
    """Ours: back-off is kept in Redis, so that no other replica tries sooner."""
    await pair.here.add([key()])
    assert await pair.here.take(1)
    await pair.here.release(key(), due_in_s=600)
    await pair.there.add([key()])
    assert await pair.there.take(1) == []
    await pair.there.add([key()], is_due=True)
    assert await pair.there.take(1) == [key()]
    await pair.here.add([key()], is_due=True)
    assert await pair.here.take(1) == [], "what is held is not made due"


async def test_a_program_that_connects_elsewhere_takes_its_source_along(pair: Pair) -> None:
    """DYN-6: the replica of the newest connection holds the source."""
    await pair.here.seize(key())
    await pair.there.seize(key())
    assert await pair.here.holder(key()) == pair.names[1]
    assert await pair.here.renew([key()]) == [key()]
    await pair.there.release(key(), due_in_s=None)
    assert await pair.here.take(1) == []


async def test_takes_are_bounded(pair: Pair) -> None:
    """Ours: one replica takes no more than it asked for."""
    await pair.here.add([key(source=f"liv_{number}") for number in range(5)])
    assert len(await pair.here.take(2)) == 2
    assert len(await pair.there.take(10)) == 3


async def test_a_lease_that_redis_has_lost_is_taken_back(pair: Pair, raw: Any) -> None:
    """SRV-4: after Redis has lost its data, the replica that still has the attachment keeps it."""
    await pair.here.add([key()])
    assert await pair.here.take(1)
    for name in await raw.keys("*:live:*"):
        await raw.delete(name)
    assert await pair.here.renew([key()]) == []
    assert await pair.there.holder(key()) == pair.names[0]
    assert await pair.there.renew([key()]) == [key()]
