"""Records of clients, the upstream and the audit trail about a time in which everything failed once."""

import os
import secrets

import pytest

from tests.support.contradictions import find_contradictions
from tests.support.history import live_through, running_whole_history

SECONDS = float(os.environ.get("HISTORY_SECONDS", "9"))
SEED = int(os.environ.get("HISTORY_SEED", "0")) or secrets.randbelow(1 << 31)


@pytest.mark.early
async def test_clients_upstream_and_audit_agree_after_every_fault() -> None:
    """Ours: no lost answer without an error, nothing done twice, nothing unrecorded, nothing foreign (SRV-3, DYN-1)."""
    print(f"HISTORY_SEED={SEED} HISTORY_SECONDS={SECONDS:g}")
    async with running_whole_history(SEED) as history:
        await live_through(history, seconds=SECONDS, clients=1)
        print(history.summary())

        assert await find_contradictions(history) == []
        assert set(history.exits) <= {0}
        ended = [call.outcome == "ok" for call in history.calls if call.tool in {"look", "act"}]
        assert sum(ended) > len(ended) / 2
        assert {call.tool for call in history.calls if call.outcome == "ok"} == {*history.tools}
