"""Links of callers in a real Redis: of one owner, authentic, bounded."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway.domain.identifiers import LiveSourceId, TenantId
from gateway.redis.event_bus import EventBus
from gateway.redis.live import linked_resources
from gateway.redis.live.linked_resources import LinkedResources

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
ONE, TWO = LiveSourceId("liv_one"), LiveSourceId("liv_two")
SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    """One replica's end of the bus."""
    async with EventBus(redis_url, secret=SECRET, namespace=secrets.token_hex(4)) as opened:
        yield opened


async def test_a_link_is_of_its_owner_and_the_source_that_returned_it_first(bus: EventBus) -> None:
    """DYN-5: tenant and owner are part of the place (TEN-1)."""
    links = LinkedResources(bus, idle_s=60)
    await links.note(ACME, "ann", ONE, ["x:1", "x:2", "x:" + "y" * 2_000])
    await links.note(ACME, "ann", TWO, ["x:2"])
    await links.note(ACME, "bob", TWO, ["x:2"])
    assert [await links.find(ACME, "ann", uri) for uri in ("x:1", "x:2", "x:3")] == [ONE, ONE, None]
    assert await links.find(ACME, "bob", "x:2") == TWO
    assert await links.find(ACME, "ann", "x:" + "y" * 2_000) is None
    assert await links.find(ACME, "bob", "x:1") is None
    assert await links.find(GLOBEX, "ann", "x:1") is None


async def test_another_source_neither_takes_over_a_link_nor_keeps_it(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a source that repeats a URI of another one serves it only after the link of the first is evicted."""
    monkeypatch.setattr(linked_resources, "MAX_OF_OWNER", 2)
    links = LinkedResources(bus, idle_s=60)

    async def note(source: LiveSourceId, uri: str) -> None:
        await links.note(ACME, "ann", source, [uri])
        await asyncio.sleep(0.002)  # links are ordered by milliseconds

    await note(ONE, "x:1")
    await note(ONE, "x:2")
    await note(ONE, "x:1")
    await note(TWO, "x:2")
    await note(TWO, "x:3")
    assert [await links.find(ACME, "ann", uri) for uri in ("x:1", "x:2", "x:3")] == [ONE, None, TWO]
    await note(TWO, "x:2")
    assert await links.find(ACME, "ann", "x:2") == TWO


async def test_a_source_does_not_evict_the_links_of_one_with_fewer(
    bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a source that returns links without end evicts its own; the limit is shared equally (ISO-3)."""
    del raw
    monkeypatch.setattr(linked_resources, "MAX_OF_OWNER", 4)
    links = LinkedResources(bus, idle_s=60)
    await links.note(ACME, "ann", ONE, ["x:1"])
    await links.note(ACME, "ann", ONE, ["x:2"])
    for number in range(1, 6):
        await links.note(ACME, "ann", TWO, [f"y:{number}"])
    assert [await links.find(ACME, "ann", f"x:{n}") for n in (1, 2)] == [ONE, ONE]
    assert [await links.find(ACME, "ann", f"y:{n}") for n in range(1, 6)] == [None, None, None, TWO, TWO]
    await links.note(ACME, "ann", ONE, ["x:3"])
    assert [bool(await links.find(ACME, "ann", f"x:{n}")) for n in range(1, 4)] == [False, True, True]
    await links.note(ACME, "ann", ONE, ["x:4"])
    assert [bool(await links.find(ACME, "ann", f"y:{n}")) for n in (4, 5)] == [True, True]


async def test_a_planted_link_leads_nowhere(bus: EventBus, raw: Any) -> None:
    """Attack: a client of Redis cannot let a caller read at another source, nor give away another caller's link."""
    links = LinkedResources(bus, idle_s=60)
    await links.note(ACME, "ann", ONE, ["x:1"])
    await links.note(ACME, "bob", TWO, ["x:2"])
    [of_ann] = [name async for name in raw.scan_iter(match=f"{bus.namespace}:*") if await raw.type(name) == b"hash"][:1]
    [(digest, value)] = (await raw.hgetall(of_ann)).items()
    uri, owner = ("x:1", "ann") if value.endswith(ONE.encode()) else ("x:2", "bob")
    other = TWO if owner == "ann" else ONE
    await raw.hset(of_ann, digest, value[:16] + other.encode())
    assert await links.find(ACME, owner, uri) is None


async def test_links_and_owners_are_bounded(bus: EventBus, raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a server that returns links without end fills Redis to a bound; the newest links stay (ISO-3)."""
    monkeypatch.setattr(linked_resources, "MAX_OF_OWNER", 2)
    monkeypatch.setattr(linked_resources, "MAX_OWNERS", 2)
    links = LinkedResources(bus, idle_s=60)
    await links.note(ACME, "ann", ONE, ["x:1", "x:2", "x:3"])
    await links.note(ACME, "ann", ONE, ["x:4"])
    assert [bool(await links.find(ACME, "ann", f"x:{n}")) for n in range(1, 5)] == [False, False, True, True]
    for owner in ("bob", "cat"):
        await links.note(ACME, owner, ONE, ["x:1"])
    assert [bool(await links.find(ACME, owner, "x:1")) for owner in ("bob", "cat")] == [True, True]
    assert await links.find(ACME, "ann", "x:4") is None
    names = [name async for name in raw.scan_iter(match=f"{bus.namespace}:*")]
    assert len(names) == 5  # two owners with their order, and the list of owners
    assert all([0 < await raw.pttl(name) <= 60_000 for name in names])
