"""Thousands of calls that are cancelled at random moments: no response reaches another caller, and nothing is
used up.
"""

from collections.abc import AsyncGenerator

import anyio
import httpx
import pytest

from tests.support.servers import TestServers
from tests.support.storm import SLUGS, Asks, Rest, Storm, all_answered, rage, settle, storming_gateway

SEED = 20260728
CLIENTS = 12
CALLS = 200
"""`tests/soak` makes many more."""
ADMIN_AT_ONCE = 100


def _assert_rested(rest: Rest, baseline: Rest) -> None:
    assert rest.is_within(baseline), f"before {baseline}, after {rest}"
    assert (rest.postgres_busy, rest.connections, rest.running) == (0, 0, 0)


async def _assert_serving(storm: Storm) -> None:
    """Every tenant gets its own answers as if nothing had been."""
    storm.broken.clear()
    await all_answered(storm, seed=SEED + 1, clients=len(SLUGS) * 2)
    assert storm.broken == []
    assert (await storm.gateway.http.get("/readyz")).status_code == 200


async def _baseline(storm: Storm) -> Rest:
    """Resources in use after the peak of concurrent clients, none of which left; then all idle."""
    await all_answered(storm, seed=SEED, clients=CLIENTS * 2)
    with anyio.fail_after(20):
        while True:
            rest = await storm.rest()
            if (rest.postgres_busy, rest.connections, rest.running) == (0, 0, 0):
                return rest
            await anyio.sleep(0.1)


@pytest.fixture(scope="module")
async def storm(servers: TestServers) -> AsyncGenerator[tuple[Storm, Rest]]:
    """A gateway with its tenants, and what it uses at rest."""
    with servers.database() as database:
        async with storming_gateway(database, servers.empty_redis(), SEED) as storm:
            baseline = await _baseline(storm)
            assert storm.broken == []
            yield storm, baseline


@pytest.mark.early
async def test_calls_left_at_any_moment_mix_nothing_up_and_use_nothing_up(storm: tuple[Storm, Rest]) -> None:
    """Ours: a dirty connection is never used again, whatever was under way on it (TEN-5, CAL-4)."""
    gateway, baseline = storm
    gateway.seen.clear()
    await rage(gateway, seed=SEED, calls=CALLS, clients=CLIENTS, make=Asks.next)
    print(f"seed {SEED}", dict(gateway.seen))

    assert gateway.mixed == []
    assert gateway.broken == []
    assert gateway.seen.total() >= CALLS
    _assert_rested(await settle(gateway, baseline), baseline)
    await _assert_serving(gateway)
    assert gateway.mixed == []


async def test_admin_requests_of_many_tenants_at_once_mix_nothing_up(storm: tuple[Storm, Rest]) -> None:
    """Ours: one tenant reads and writes its own objects only, among 100 concurrent requests (TEN-5, TEN-1)."""
    gateway, baseline = storm
    gateway.broken.clear()
    await rage(gateway, seed=SEED, calls=ADMIN_AT_ONCE, clients=ADMIN_AT_ONCE, make=Asks.admin)
    print(f"seed {SEED}", dict(gateway.seen))

    assert gateway.mixed == []
    assert [line for line in gateway.broken if "got 503" not in line] == []
    _assert_rested(await settle(gateway, baseline), baseline)
    for tenant in gateway.tenants:
        names = await _key_names(gateway, tenant.slug)
        assert {name.split("-")[2] for name in names if name != "test"} <= {tenant.slug}
    await _assert_serving(gateway)


async def _key_names(storm: Storm, slug: str) -> list[str]:
    """The names of all keys of a tenant, as the operator reads them."""
    names: list[str] = []
    query: dict[str, str] = {}
    while True:
        answer: httpx.Response = await storm.gateway.admin.get(f"/tenants/{slug}/keys", params=query)
        page = answer.json()
        names += [item["name"] for item in page["items"]]
        if not page.get("next_cursor"):
            return names
        query = {"cursor": page["next_cursor"]}
