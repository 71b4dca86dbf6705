"""The storm of `tests/attacks/test_cancellation_safety.py` for a chosen time."""

import os
import secrets

from tests.support.servers import TestDatabase
from tests.support.storm import Asks, all_answered, rage, settle, storming_gateway

CALLS = int(os.environ.get("SOAK_CALLS", "60000"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or secrets.randbelow(1 << 31)
ROUND = 5000
CLIENTS = 32


async def test_storm_after_storm_mixes_nothing_up_and_uses_nothing_up(database: TestDatabase, redis_url: str) -> None:
    """Ours: many storms show more than one; each round has another seed, the first is printed (TEN-5)."""
    print(f"SOAK_SEED={SEED} SOAK_CALLS={CALLS}")
    async with storming_gateway(database, redis_url, SEED) as storm:
        await all_answered(storm, seed=SEED, clients=CLIENTS * 2)
        baseline = await storm.rest()
        for number, _ in enumerate(range(0, CALLS, ROUND)):
            await rage(storm, seed=SEED + number, calls=ROUND, clients=CLIENTS, make=Asks.next)
            rest = await settle(storm, baseline)
            print(f"round {number}: {dict(storm.seen)}; {rest}")
            assert storm.mixed == storm.broken == []
            assert rest.is_within(baseline), f"before {baseline}, after {rest}"
