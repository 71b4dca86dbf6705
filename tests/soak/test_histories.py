"""The history of `tests/behaviour/faults/test_history.py` again and again, each time with another seed."""

import os
import secrets

import pytest

from tests.support.contradictions import find_contradictions
from tests.support.history import live_through, running_whole_history

ROUNDS = int(os.environ.get("SOAK_HISTORIES", "20"))
SECONDS = float(os.environ.get("HISTORY_SECONDS", "60"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or secrets.randbelow(1 << 30)


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_no_history_contradicts_itself(number: int) -> None:
    """Ours: many histories show more than one; the seed of each is printed (SRV-3, SRV-4)."""
    print(f"HISTORY_SEED={SEED + number} HISTORY_SECONDS={SECONDS:g}")
    async with running_whole_history(SEED + number) as history:
        await live_through(history, seconds=SECONDS, clients=3)
        print(history.summary())

        assert await find_contradictions(history) == []
        assert set(history.exits) <= {0}
