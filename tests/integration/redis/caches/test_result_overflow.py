"""Whole results in a real Redis: readable by their caller alone, bounded, gone after a while."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway.domain.identifiers import TenantId
from gateway.redis.caches.result_overflow import ResultOverflow, StoredResult
from gateway.redis.event_bus import EventBus

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    """One replica's end of the bus."""
    async with EventBus(redis_url, secret=b"the secret of all replicas") as opened:
        yield opened


async def test_a_result_is_read_by_its_caller_and_nobody_else(bus: EventBus) -> None:
    """Ours: tenant and subject are part of the place; a link of somebody else leads nowhere (TEN-1)."""
    kept = ResultOverflow(bus)
    uri = await kept.keep(ACME, "anna", "application/json", b"[1]")

    assert uri is not None
    assert uri.startswith("gateway+result://")
    assert await kept.read(ACME, "anna", uri) == StoredResult(content_type="application/json", body=b"[1]")
    assert await kept.read(ACME, "bert", uri) is None
    assert await kept.read(GLOBEX, "anna", uri) is None


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "gateway+result://",
        "gateway+result://x",
        "gateway+result://" + "a" * 32,
        "gateway+result://" + "a" * 32 + "\n",
        "gateway+result://../../" + "a" * 26,
        "https://h/" + "a" * 32,
    ],
)
async def test_what_is_no_link_leads_nowhere(bus: EventBus, uri: str) -> None:
    """Ours: nothing of a URI reaches a key but an id of our form."""
    assert await ResultOverflow(bus).read(ACME, "anna", uri) is None


async def test_a_result_ends(bus: EventBus, raw: Any) -> None:
    """Ours: nothing without an end is left in Redis."""
    await ResultOverflow(bus, life_s=60).keep(ACME, "anna", "text/plain", b"x")

    keys = [key async for key in raw.scan_iter(match="*leftover*")]
    assert len(keys) == 3
    assert all([0 < await raw.pttl(key) <= 60_000 for key in keys])


async def test_what_a_tenant_keeps_is_bounded(bus: EventBus) -> None:
    """Ours: the oldest goes first, and no other tenant's."""
    kept = ResultOverflow(bus, tenant_limit=25)
    uris = [await kept.keep(ACME, "anna", "text/plain", b"x" * 10) for _ in range(4)]
    other = await kept.keep(GLOBEX, "anna", "text/plain", b"y" * 10)

    found = [await kept.read(ACME, "anna", uri or "") for uri in uris]
    assert [item is not None for item in found] == [False, False, True, True]
    assert await kept.read(GLOBEX, "anna", other or "") is not None


async def test_what_is_too_large_is_not_kept(bus: EventBus) -> None:
    """Ours: one result has a bound too."""
    assert await ResultOverflow(bus, largest=3).keep(ACME, "anna", "text/plain", b"xxxx") is None
