"""Counted refusals: equal ones become one entry, and a flood stays bounded."""

import pytest

from gateway.domain.audit import CallRecord, CountedRefusal
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable
from gateway.store.audit.refusals import MAX_OF_A_TENANT, RefusalTally

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


class Trail:
    """A writer that keeps what it receives, or fails."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self.is_away = False

    async def write(self, record: CallRecord) -> None:
        if self.is_away:
            raise AuditUnavailable("no database")
        self.records.append(record)

    @property
    def counts(self) -> dict[tuple[str, str, str], object]:
        """Tenant, principal and outcome of each entry, and its number of refusals."""
        return {(one.tenant, one.principal, one.outcome): (one.detail or {})["count"] for one in self.records}


def _wrong(key: str) -> CountedRefusal:
    return CountedRefusal(f"key:{key}", "sign-in", "auth.unauthenticated.wrong")


async def test_equal_refusals_become_one_entry() -> None:
    """Ours: a thousand refusals are one row, with their number and times, in their tenant's trail (SAF-4)."""
    trail = Trail()
    tally = RefusalTally(trail.write)
    for _ in range(1000):
        tally.count(ACME, _wrong("key_1"))
    tally.count(GLOBEX, _wrong("key_1"))

    await tally.flush()
    await tally.flush()

    assert trail.counts == {
        (ACME, "key:key_1", "auth.unauthenticated.wrong"): 1000,
        (GLOBEX, "key:key_1", "auth.unauthenticated.wrong"): 1,
    }
    detail = trail.records[0].detail or {}
    assert detail["first"] <= detail["last"]  # type: ignore[operator]  # texts of times


async def test_a_tenant_has_a_bounded_number_of_entries() -> None:
    """Ours: refusals that differ are counted together beyond a hundred, and none is lost (SAF-4)."""
    trail = Trail()
    tally = RefusalTally(trail.write)
    for number in range(5 * MAX_OF_A_TENANT):
        tally.count(ACME, _wrong(f"key_{number}"))

    await tally.flush()

    assert len(trail.records) == MAX_OF_A_TENANT + 1
    assert sum(count for count in trail.counts.values() if isinstance(count, int)) == 5 * MAX_OF_A_TENANT


async def test_tenants_are_bounded() -> None:
    """Ours: memory does not grow with the tenants that are attacked (SAF-4)."""
    trail = Trail()
    tally = RefusalTally(trail.write)
    for number in range(10_050):
        tally.count(TenantId(f"ten_{number}"), _wrong("key_1"))

    await tally.flush()

    assert len(trail.records) == 10_000


@pytest.mark.parametrize("rounds", [1, 3])
async def test_what_cannot_be_written_is_counted_on(rounds: int) -> None:
    """Ours: refusals during an outage reach the trail after it (SAF-4)."""
    trail = Trail()
    tally = RefusalTally(trail.write)
    tally.count(ACME, _wrong("key_1"))
    trail.is_away = True
    for _ in range(rounds):
        await tally.flush()
    tally.count(ACME, _wrong("key_1"))
    trail.is_away = False

    await tally.flush()

    assert list(trail.counts.values()) == [2]


async def test_what_is_counted_at_the_end_is_written() -> None:
    """Ours: a replica that stops writes what it has counted; a key of no tenant leaves no entry (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        tally.count(ACME, _wrong("key_1"))
        tally.count(TenantId(""), _wrong("unknown"))

    assert list(trail.counts) == [(ACME, "key:key_1", "auth.unauthenticated.wrong")]
