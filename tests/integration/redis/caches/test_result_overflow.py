"""Whole results in a real Redis: readable by their caller alone, bounded, gone after a while."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from gateway.domain.calls.limits import MAX_STORED_BYTES
from gateway.domain.identifiers import TenantId
from gateway.domain.results import StoredResult
from gateway.redis.caches.result_overflow import ResultOverflow
from gateway.redis.event_bus import EventBus

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


@pytest.fixture
async def bus(redis_url: str) -> AsyncGenerator[EventBus]:
    """One replica's end of the bus."""
    async with EventBus(redis_url, secret=b"the secret of all replicas") as opened:
        yield opened


async def test_a_result_is_read_by_its_caller_only(bus: EventBus) -> None:
    """Ours: tenant and subject are part of the place; another principal's link leads nowhere (TEN-1)."""
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
async def test_a_malformed_link_leads_nowhere(bus: EventBus, uri: str) -> None:
    """Ours: nothing of a URI reaches a key but an id of our form."""
    assert await ResultOverflow(bus).read(ACME, "anna", uri) is None


async def test_a_result_ends(bus: EventBus, raw: Any) -> None:
    """Ours: nothing without an end is left in Redis."""
    await ResultOverflow(bus, life_s=60).keep(ACME, "anna", "text/plain", b"x")

    keys = [key async for key in raw.scan_iter(match="*leftover*")]
    assert len(keys) == 3
    assert all([0 < await raw.pttl(key) <= 60_000 for key in keys])


async def test_stored_results_of_a_tenant_are_bounded(bus: EventBus) -> None:
    """Ours: the oldest goes first, and no other tenant's."""
    kept = ResultOverflow(bus, tenant_limit=25, min_charge=1)
    uris = [await kept.keep(ACME, "anna", "text/plain", b"x" * 10) for _ in range(4)]
    other = await kept.keep(GLOBEX, "anna", "text/plain", b"y" * 10)

    found = [await kept.read(ACME, "anna", uri or "") for uri in uris]
    assert [item is not None for item in found] == [False, False, True, True]
    assert await kept.read(GLOBEX, "anna", other or "") is not None


async def test_a_result_beyond_the_bound_is_not_stored(bus: EventBus) -> None:
    """Ours: one result has a bound too."""
    assert await ResultOverflow(bus).keep(ACME, "anna", "text/plain", bytes(MAX_STORED_BYTES + 1)) is None


async def test_a_busy_owner_evicts_its_own(bus: EventBus) -> None:
    """Ours: a neighbour whose every answer is large leaves the results of others where they are (OAS-10)."""
    kept = ResultOverflow(bus, tenant_limit=100, owner_limit=50, min_charge=1)
    first = await kept.keep(ACME, "bert", "text/plain", b"b" * 30)
    uris = [await kept.keep(ACME, "anna", "text/plain", b"a" * 20) for _ in range(6)]

    assert await kept.read(ACME, "bert", first or "") is not None
    assert [await kept.read(ACME, "anna", uri or "") is not None for uri in uris] == [False] * 4 + [True] * 2


async def test_room_comes_from_the_owner_with_the_most(bus: EventBus) -> None:
    """Ours: a full tenant still has room for a new owner, and the smallest owner keeps its results (OAS-10)."""
    kept = ResultOverflow(bus, tenant_limit=100, owner_limit=60, min_charge=1)
    small = await kept.keep(ACME, "cleo", "text/plain", b"c" * 10)
    large = [await kept.keep(ACME, owner, "text/plain", b"x" * 30) for owner in ("anna", "anna", "bert")]
    new = await kept.keep(ACME, "dora", "text/plain", b"d" * 60)

    assert await kept.read(ACME, "cleo", small or "") is not None
    assert await kept.read(ACME, "dora", new or "") is not None
    assert await kept.read(ACME, "anna", large[0] or "") is None


async def test_small_results_are_limited_in_number(bus: EventBus, raw: Any) -> None:
    """Ours: each counts as 64 kB, so that the script has few results to look at."""
    kept = ResultOverflow(bus, owner_limit=4 * 64 * 1024)
    for _ in range(6):
        await kept.keep(ACME, "anna", "text/plain", b"x")

    assert len([key async for key in raw.scan_iter(match="*leftover:*")]) == 4


async def test_results_leave_memory_for_the_rest(bus: EventBus, raw: Any) -> None:
    """Ours: results of many tenants do not fill a Redis that evicts nothing (ISO-2)."""
    await raw.config_set("maxmemory", 64 * 2**30)
    try:
        full = await ResultOverflow(bus, memory_share=1e-9).keep(ACME, "anna", "text/plain", b"x")
        usual = await ResultOverflow(bus).keep(ACME, "anna", "text/plain", b"x")
    finally:
        await raw.config_set("maxmemory", 0)
    unlimited = await ResultOverflow(bus, memory_share=1e-9).keep(ACME, "anna", "text/plain", b"x")

    assert (full is None, usual is None, unlimited is None) == (True, False, False)
