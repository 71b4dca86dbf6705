"""Refusals in the trail: the first are entries, equal ones become one entry with a count, and a flood stays bounded."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from gateway.domain.audit import CallRecord, RuleKind, refused
from gateway.domain.identifiers import TenantId
from gateway.errors import AuditUnavailable, DecidingRule
from gateway.store.audit.limits import MAX_OF_A_TENANT, MAX_PENDING_OF_A_TENANT
from gateway.store.audit.refusals import FIRST, RefusalTally
from gateway.telemetry.log_context import LABELS, LogContext

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
WRONG = DecidingRule(RuleKind.CREDENTIAL, "wrong")


class Trail:
    """A writer that keeps what it receives, fails, or hangs for one tenant."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self.is_away = False
        self.hangs_for: TenantId | None = None
        self.released = asyncio.Event()

    async def write(self, record: CallRecord) -> None:
        if record.tenant == self.hangs_for:
            await self.released.wait()
        if self.is_away:
            raise AuditUnavailable("no database")
        self.records.append(record)

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """The number of refusals in the entries, by tenant and principal."""
        found: dict[tuple[str, str], int] = {}
        for one in self.records:
            count = (one.detail or {}).get("count", 1)
            assert isinstance(count, int)
            found[one.tenant, one.principal] = found.get((one.tenant, one.principal), 0) + count
        return found


def _note(tally: RefusalTally, tenant: TenantId, key: str, rule: DecidingRule = WRONG) -> None:
    tally.note(refused(tenant, f"key:{key}", "sign-in", "auth.unauthenticated.wrong"), rule, "the secret is wrong")


async def test_the_first_refusals_are_entries_and_the_rest_one_entry_with_a_count() -> None:
    """Ours: each of the first has the facts of its request; further ones are one row with times (SAF-4, OPR-1)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        for number in range(1000):
            labelled = LABELS.set(LogContext(f"request-{number}", address="192.0.2.1", client="agent"))
            _note(tally, ACME, "key_1")
            LABELS.reset(labelled)
        _note(tally, GLOBEX, "key_1")
        await tally.settle(ACME)
        await tally.settle(GLOBEX)
        first = list(trail.records)
        await tally.flush()
        await tally.flush()

    assert [one.correlation_id for one in first if one.tenant == ACME] == [f"request-{n}" for n in range(FIRST)]
    rule = {"kind": "credential", "name": "wrong"}
    facts = {"claimed_client": "agent", "address": "192.0.2.1"}
    assert first[0].detail == {"rule": rule, "reason": "the secret is wrong", **facts}
    assert trail.counts == {(ACME, "key:key_1"): 1000, (GLOBEX, "key:key_1"): 1}
    assert len(trail.records) == FIRST + 2
    detail = trail.records[-1].detail or {}
    assert (detail["count"], detail["rule"]) == (1000 - FIRST, rule)
    assert detail["first"] <= detail["last"]  # type: ignore[operator]  # texts of times


async def test_each_rule_has_entries_of_its_own() -> None:
    """Ours: a flood by one rule hides no refusal of another rule (OPR-1)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        for _ in range(100):
            _note(tally, ACME, "key_1")
        _note(tally, ACME, "key_1", DecidingRule(RuleKind.POLICY, "2", "rule 2: never"))

    rules = [(one.detail or {})["rule"] for one in trail.records]
    assert {"kind": "policy", "name": "2", "words": "rule 2: never"} in rules


async def test_a_tenant_has_a_bounded_number_of_entries() -> None:
    """Ours: refusals that differ are counted together beyond a hundred, and none is lost (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        for number in range(5 * MAX_OF_A_TENANT):
            _note(tally, ACME, f"key_{number}")

    assert len(trail.records) == MAX_OF_A_TENANT + 1
    assert sum(trail.counts.values()) == 5 * MAX_OF_A_TENANT


async def test_a_principal_hides_no_refusal_of_another() -> None:
    """Attack: invented profiles are one rule, and one principal's flood leaves room for others (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        for number in range(10 * MAX_OF_A_TENANT):
            _note(tally, ACME, "flood", DecidingRule(RuleKind.PROFILE, f"invented{number}"))
            _note(tally, ACME, "flood", DecidingRule(RuleKind.POLICY, str(number)))
            await checkpoint()
        _note(tally, ACME, "victim", DecidingRule(RuleKind.ACCESS, "3"))

    principals = [one.principal for one in trail.records]
    assert principals.count("key:victim") == 1
    assert "others" not in principals
    profiles = [one for one in trail.records if (one.detail or {})["rule"]["kind"] == "profile"]  # type: ignore[index]
    assert len(profiles) == FIRST + 1
    assert sum(trail.counts.values()) == 20 * MAX_OF_A_TENANT + 1


async def test_tenants_are_bounded() -> None:
    """Ours: memory does not grow with the tenants that are attacked (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        for number in range(10_050):
            _note(tally, TenantId(f"ten_{number}"), "key_1")
        counted = tally.noted["tenant", "credential"]

    assert (len(trail.records), counted) == (10_000, 10_050)


async def test_a_tenants_waiting_entries_delay_no_other_tenant() -> None:
    """Ours: entries that wait for PostgreSQL are bounded for each tenant, and the others are written (ISO-3)."""
    trail = Trail()
    trail.hangs_for = ACME
    tally = RefusalTally(trail.write)
    async with tally:
        for number in range(5 * MAX_PENDING_OF_A_TENANT):
            _note(tally, ACME, f"key_{number}")
        await anyio.wait_all_tasks_blocked()
        _note(tally, GLOBEX, "key_1")
        await tally.settle(GLOBEX)
        written = [one.tenant for one in trail.records]
        trail.released.set()

    assert written == [GLOBEX]
    assert len([one for one in trail.records if one.tenant == ACME]) == 5 * MAX_PENDING_OF_A_TENANT


@pytest.mark.parametrize("rounds", [1, 3])
async def test_unwritten_refusals_are_counted(rounds: int) -> None:
    """Ours: refusals during an outage reach the trail after it, and noting one never fails (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        trail.is_away = True
        _note(tally, ACME, "key_1")
        await tally.settle(ACME)
        for _ in range(rounds):
            await tally.flush()
        trail.is_away = False
        await tally.flush()
        _note(tally, ACME, "key_1")

    assert trail.counts == {(ACME, "key:key_1"): 2}


async def test_noted_refusals_are_written_at_the_end() -> None:
    """Ours: a replica that stops writes what it has noted; a stranger is in a metric, and in no trail (SAF-4)."""
    trail = Trail()
    async with RefusalTally(trail.write) as tally:
        _note(tally, ACME, "key_1")
        _note(tally, TenantId(""), "")

    assert list(trail.counts) == [(ACME, "key:key_1")]
    assert tally.noted == {("tenant", "credential"): 1, ("stranger", "credential"): 1}
