"""Thousands of calls that are left at random moments: nobody is given what is another's, and nothing is used up."""

import anyio
import httpx

from tests.support.servers import TestDatabase
from tests.support.storm import SLUGS, Asks, Rest, Storm, all_answered, rage, settle, storming_gateway

SEED = 20260728
CLIENTS = 24
CALLS = 2_000
ADMIN_AT_ONCE = 500


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
    """What is in use after as many clients at once as there will be, none of which left; then all at rest."""
    await all_answered(storm, seed=SEED, clients=CLIENTS * 2)
    with anyio.fail_after(20):
        while True:
            rest = await storm.rest()
            if (rest.postgres_busy, rest.connections, rest.running) == (0, 0, 0):
                return rest
            await anyio.sleep(0.1)


async def test_calls_left_at_any_moment_mix_nothing_up_and_use_nothing_up(
    database: TestDatabase, redis_url: str
) -> None:
    """Ours: a dirty connection is never used again, whatever was under way on it (TEN-5, CAL-4)."""
    async with storming_gateway(database, redis_url, SEED) as storm:
        baseline = await _baseline(storm)
        assert storm.broken == []
        await rage(storm, seed=SEED, calls=CALLS, clients=CLIENTS, make=Asks.next)
        print(f"seed {SEED}", dict(storm.seen))

        assert storm.mixed == []
        assert storm.broken == []
        assert storm.seen.total() >= CALLS
        _assert_rested(await settle(storm, baseline), baseline)
        await _assert_serving(storm)
        assert storm.mixed == []


async def test_admin_requests_of_many_tenants_at_once_mix_nothing_up(database: TestDatabase, redis_url: str) -> None:
    """Ours: what one tenant reads and writes among 500 requests at once is its own (TEN-5, TEN-1)."""
    async with storming_gateway(database, redis_url, SEED) as storm:
        baseline = await _baseline(storm)
        await rage(storm, seed=SEED, calls=ADMIN_AT_ONCE * 2, clients=ADMIN_AT_ONCE, make=Asks.admin)
        print(f"seed {SEED}", dict(storm.seen))

        assert storm.mixed == []
        assert [line for line in storm.broken if "got 503" not in line] == []
        _assert_rested(await settle(storm, baseline), baseline)
        for tenant in storm.tenants:
            names = await _key_names(storm, tenant.slug)
            assert {name.split("-")[2] for name in names if name != "test"} <= {tenant.slug}
        await _assert_serving(storm)


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
