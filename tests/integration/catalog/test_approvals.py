"""Approvals in the catalog: the approval that equal calls share, its permitted deciders, the single run, and the
limits.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from sqlalchemy import text

from gateway.calls.approval import ApprovalStation
from gateway.calls.invocation import Invocation
from gateway.calls.pipeline import CallPipeline
from gateway.catalog.calls import approvals
from gateway.catalog.calls.approvals import (
    ApprovalVerdict,
    CallToApprove,
    ShownCall,
    claim_approval,
    decide_approval,
    finish_approval,
    get_approval,
    open_approval,
    page_approvals,
    park_approval,
    renew_claims,
    supersede_approvals,
    sweep,
)
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.kinds.live_sources import LIVE_SOURCES
from gateway.catalog.kinds.overrides import override_tool, reset_tool
from gateway.catalog.kinds.primitives import TOOLS
from gateway.catalog.live.attachments import record_attached
from gateway.catalog.sources.drafts import SourceDraft
from gateway.catalog.sources.imports import import_source
from gateway.catalog.sources.sources import remove_source
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.calls.approvals import Approval, ApprovalFilter, ApprovalState, RequestShown
from gateway.domain.events import ApprovalChanged
from gateway.domain.identifiers import ApprovalId, KeyId, TenantId
from gateway.domain.live_sources import LiveKind
from gateway.domain.primitives import Family
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Operator, Principal
from gateway.errors import AuditUnavailable, Conflict, Forbidden, LimitExceeded, NotFound, PreconditionFailed
from gateway.store import jobs
from gateway.store.calls import approvals as stored
from gateway.store.calls.credential_uses import CredentialUse
from gateway.store.engine import Store
from gateway.store.identity import issuers, people
from gateway.store.kinds.singletons import POLICY
from tests.integration.catalog.conftest import Changes
from tests.integration.store.samples import NOW, make_issuer, make_person
from tests.support.documents import pets
from tests.support.handler_bench import CallJournal
from tests.support.keys import new_key
from tests.support.live_offers import offer_of, offered_tool
from tests.support.live_sources import declare_live, live_draft
from tests.support.own_primitives import change_own, create_own
from tests.support.peers import TalkingPeer

SHOWN = ShownCall(
    request=RequestShown(method="DELETE", url="https://pets.example/pets/7", body="the-secret-body"),
    warnings=("Deletes /pets/7.",),
)


YES, NO = ApprovalVerdict(is_approved=True), ApprovalVerdict(is_approved=False)


@dataclass(slots=True)
class Office:
    """A catalog with an agent that calls, and persons that decide."""

    changes: Changes
    catalog: CatalogContext
    agent: Principal
    records: list[CallRecord] = field(default_factory=list[CallRecord])
    is_audited: bool = True
    policy_version: int = 1

    @property
    def tenant(self) -> TenantId:
        return self.changes.tenant.id

    @property
    def actions(self) -> list[str]:
        return [record.action for record in self.records]

    async def write(self, record: CallRecord) -> None:
        if not self.is_audited:
            raise AuditUnavailable("away")
        self.records.append(record)

    def call(self, **changed: Any) -> CallToApprove:
        call = CallToApprove(
            principal=self.agent,
            profile="default",
            action="call",
            tool="delete_pet",
            tool_digest="aa",
            policy_version=self.policy_version,
            digest=b"digest of the call",
            correlation_id="cor_1",
            uses=CredentialUse(),
        )
        return replace(call, **changed)

    async def open(self, call: CallToApprove | None = None) -> Approval:
        async def show() -> ShownCall:
            return SHOWN

        return await open_approval(self.tenant, self.catalog, call or self.call(), show)

    async def approve(self, approval: Approval) -> Approval:
        return await decide_approval(self.tenant, self.catalog, approval.id, YES, by=person())

    async def claim(
        self, approval: Approval, call: CallToApprove | None = None, *, earlier: str | None = None
    ) -> str | None:
        intent = CallRecord(
            tenant=self.tenant,
            kind=AuditKind.CALL_INTENT,
            principal=self.agent.name,
            subject=self.agent.subject,
            tool="delete_pet",
            outcome="intended",
            correlation_id="cor_1",
        )
        return await claim_approval(
            self.tenant, self.catalog, approval.id, call or self.call(), intent=intent, earlier=earlier
        )

    async def pass_time(self, column: str, by: timedelta = timedelta(days=40)) -> None:
        """Move a stored moment of every approval into the past."""
        async with self.catalog.store.transaction(self.tenant) as db:
            await db.execute(text(f"update approvals set {column} = {column} - cast(:by as interval)"), {"by": by})

    async def state(self, approval: Approval) -> ApprovalState:
        return (await get_approval(self.tenant, self.catalog, approval.id)).state

    async def sweep(self) -> None:
        """Run the job of the tenant as if it were due."""
        async with self.catalog.store.transaction(self.tenant) as db:
            rows = await db.execute(text("select id, kind, due_at from due_work where id = 'approvals'"))
            row = rows.mappings().one()
        await sweep(self.catalog, jobs.Job(tenant=self.tenant, **row))


def person(name: str = "anna", *scopes: Scope) -> Author:
    caller = Principal(
        tenant=TenantId("ten_any"),
        slug="acme",
        key=KeyId(f"key_{name}"),
        subject=name,
        scopes=frozenset(scopes or {Scope.APPROVE}),
    )
    return Author(caller=caller, correlation_id="cor_decision")


@pytest.fixture
async def office(changes: Changes) -> Office:
    by = Author(caller=Operator(), correlation_id="t")
    key = await KEYS.create(changes.tenant.id, changes.catalog, new_key(subject="bot"), by=by)
    agent = Principal(tenant=changes.tenant.id, slug="acme", key=key.id, subject="bot", scopes=key.scopes)
    office = Office(changes, changes.catalog, agent)
    office.catalog = replace(changes.catalog, audit=office.write)
    async with changes.catalog.store.transaction(office.tenant) as db:
        office.policy_version = (await POLICY.get(office.tenant, db)).version
    return office


async def test_equal_calls_of_a_subject_share_one_approval(office: Office) -> None:
    """Ours: the same prepared call attaches; another call, profile, kind or subject does not (SAF-3)."""
    first = await office.open()

    assert (await office.open()).id == first.id
    other_key = replace(office.agent, key=KeyId("key_other"))
    assert (await office.open(office.call(principal=other_key))).id == first.id
    others = [
        office.call(digest=b"another"),
        office.call(profile="small"),
        office.call(action="get"),
        office.call(tool="delete_all"),
        office.call(principal=replace(office.agent, subject="another bot")),
    ]
    ids = {(await office.open(call)).id for call in others}
    assert len(ids | {first.id}) == 1 + len(others)
    assert office.actions == ["approval.requested"] * 6


async def test_two_equal_calls_at_once_open_one_approval(office: Office) -> None:
    """Ours: the unique index and the lock leave one row, and both callers have it."""
    found: list[Approval] = []

    async def open_one() -> None:
        found.append(await office.open())

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(open_one)

    assert len({one.id for one in found}) == 1
    assert office.actions == ["approval.requested"]


async def test_a_decision_is_another_subjects(office: Office) -> None:
    """Ours: by subject, not by key: a second key of the requester decides nothing; neither does one without scope."""
    asked = await office.open()

    for by in (person("bot"), person("anna", Scope.ADMIN), person("anna", Scope.MCP)):
        with pytest.raises(Forbidden):
            await decide_approval(office.tenant, office.catalog, asked.id, YES, by=by)
    assert await office.state(asked) is ApprovalState.PENDING

    decided = await decide_approval(
        office.tenant, office.catalog, asked.id, ApprovalVerdict(is_approved=True, comment="looks right"), by=person()
    )
    assert (decided.state, decided.decided_by, decided.decider_subject) == ("approved", "key:key_anna", "anna")
    assert decided.comment == "looks right"
    record = office.records[-1]
    assert (record.action, record.principal, record.subject, record.outcome) == (
        "approval.approved",
        "key:key_anna",
        "anna",
        asked.id,
    )
    assert office.changes.events[-1] == ApprovalChanged(tenant=office.tenant, approval=asked.id)


@pytest.mark.parametrize(
    ("requester", "decider"),
    [("bot", "Bot"), ("bot", " bot "), ("bot", "\uff42ot"), ("bot", "b\u200bot\u2060"), ("jos\xe9", "JOSE\u0301")],
)
async def test_another_spelling_is_no_other_person(office: Office, requester: str, decider: str) -> None:
    """Ours: keys of one person may spell the subject differently; an unlike name is another person (SAF-3)."""
    asked = await office.open(office.call(principal=replace(office.agent, subject=requester)))

    with pytest.raises(Forbidden, match="another person"):
        await decide_approval(office.tenant, office.catalog, asked.id, YES, by=person(decider))
    await decide_approval(office.tenant, office.catalog, asked.id, YES, by=person(f"{decider}2"))


async def test_the_database_refuses_a_decision_of_the_requester(office: Office) -> None:
    """Ours: the conditional update compares the subjects too."""
    asked = await office.open()
    decided: dict[str, object] = {"state": "approved", "decided_by": "key:x", "decider_subject": "bot", "comment": ""}
    async with office.catalog.store.transaction(office.tenant) as db:
        usable = timedelta(hours=1)
        assert not await stored.decide(office.tenant, db, asked.id, decided=decided, usable=usable)
        decided["decider_subject"] = "anna"
        assert await stored.decide(office.tenant, db, asked.id, decided=decided, usable=usable)


async def test_the_operator_decides_but_not_about_the_operators_own_call(office: Office) -> None:
    """Ours: a call that the operator tries has the subject `operator`."""
    operator = Author(caller=Operator(), correlation_id="t")
    own = await office.open(office.call(principal=replace(office.agent, key=KeyId("operator"), subject="operator")))
    asked = await office.open()

    with pytest.raises(Forbidden):
        await decide_approval(office.tenant, office.catalog, own.id, YES, by=operator)
    decided = await decide_approval(office.tenant, office.catalog, asked.id, NO, by=operator)
    assert (decided.state, decided.ended_at is not None) == (ApprovalState.DENIED, True)


async def test_a_decision_is_made_once(office: Office) -> None:
    """Ours: of many persons at once, one decides; the others get a conflict, also for an older version."""
    asked = await office.open()
    outcomes: list[str] = []

    async def decide(number: int) -> None:
        try:
            found = await decide_approval(
                office.tenant,
                office.catalog,
                asked.id,
                ApprovalVerdict(is_approved=number % 2 == 0),
                by=person(f"p{number}"),
            )
            outcomes.append(found.state)
        except Conflict:
            outcomes.append("conflict")

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(decide, number)

    assert len(outcomes) == 6
    assert outcomes.count("conflict") == 5
    with pytest.raises(PreconditionFailed):
        await decide_approval(
            office.tenant,
            office.catalog,
            asked.id,
            ApprovalVerdict(is_approved=True),
            by=person(),
            expected=frozenset({f"{asked.id}.1"}),
        )


async def test_a_decision_without_its_entry_is_not_made(office: Office) -> None:
    """Ours: the entry is stored before the decision commits (SAF-4); so is the intent before the run."""
    asked = await office.open()
    office.is_audited = False
    with pytest.raises(AuditUnavailable):
        await office.approve(asked)
    assert await office.state(asked) is ApprovalState.PENDING

    office.is_audited = True
    await office.approve(asked)
    office.is_audited = False
    with pytest.raises(AuditUnavailable):
        await office.claim(asked)
    assert await office.state(asked) is ApprovalState.APPROVED


async def test_of_many_callers_one_runs_the_call(office: Office) -> None:
    """Ours: one conditional update makes an approved call a running one; no approval runs twice (SAF-3, R4)."""
    asked = await office.open()
    assert await office.claim(asked) is None
    await office.approve(asked)
    claims: list[str | None] = []

    async def claim() -> None:
        claims.append(await office.claim(asked))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(claim)

    [won] = [claim for claim in claims if claim is not None]
    assert len(claims) == 8
    assert (await office.open()).id == asked.id
    assert await finish_approval(office.tenant, office.catalog, asked.id, won, outcome="ok")
    ended = await get_approval(office.tenant, office.catalog, asked.id)
    assert (ended.state, ended.outcome) == (ApprovalState.DONE, "ok")
    assert await office.claim(asked) is None
    assert (await office.open()).id != asked.id


async def test_a_run_whose_lease_is_past_is_unknown_for_good(office: Office) -> None:
    """Ours: the sweep marks it; its late outcome changes nothing, and it never runs again (R4)."""
    asked = await office.open()
    await office.approve(asked)
    claim = await office.claim(asked)
    assert claim is not None
    await office.sweep()
    assert await office.state(asked) is ApprovalState.RUNNING

    await office.pass_time("leased_until", timedelta(minutes=1))
    await renew_claims(office.tenant, office.catalog, [claim])
    await office.sweep()

    assert await office.state(asked) is ApprovalState.UNKNOWN
    assert not await finish_approval(office.tenant, office.catalog, asked.id, claim, outcome="ok")
    assert await office.claim(asked) is None
    assert await office.state(asked) is ApprovalState.UNKNOWN
    assert office.actions[-1] == "approval.unknown"


async def test_a_renewed_lease_holds(office: Office) -> None:
    """Ours: a long call stays running while its replica renews the lease; a parked claim is taken over once."""
    asked = await office.open()
    await office.approve(asked)
    claim = await office.claim(asked)
    assert claim is not None
    await office.pass_time("leased_until", timedelta(seconds=25))
    await renew_claims(office.tenant, office.catalog, [claim])
    await office.pass_time("leased_until", timedelta(seconds=20))
    await office.sweep()
    assert await office.state(asked) is ApprovalState.RUNNING

    assert await office.claim(asked, earlier=claim) is None
    assert await park_approval(office.tenant, office.catalog, asked.id, claim)
    later = await office.claim(asked, earlier=claim)
    assert later is not None
    assert await office.claim(asked, earlier=claim) is None
    assert await office.claim(asked) is None
    assert await finish_approval(office.tenant, office.catalog, asked.id, later, outcome="ok")


async def test_time_runs_out_before_and_after_the_decision(office: Office) -> None:
    """Ours: an expired approval is neither decided nor run, swept or not, and an equal call is asked again."""
    late = await office.open()
    await office.pass_time("expires_at")
    with pytest.raises(Conflict, match="expired"):
        await office.approve(late)
    again = await office.open()
    assert again.id != late.id
    assert await office.state(late) is ApprovalState.EXPIRED

    await office.approve(again)
    await office.pass_time("expires_at")
    assert await office.claim(again) is None
    await office.sweep()
    assert await office.state(again) is ApprovalState.EXPIRED
    assert office.actions.count("approval.expired") == 2


async def test_a_changed_tool_or_policy_needs_a_new_approval(office: Office) -> None:
    """Ours: an approval under another definition or policy does not run (SAF-3)."""
    for changed in ({"tool_digest": "bb"}, {"tool_digest": "bb", "policy_version": 99}):
        before = await office.open()
        if before.state is ApprovalState.PENDING:
            await office.approve(before)
        after = await office.open(office.call(**changed))
        assert after.id != before.id
        assert after.state is ApprovalState.PENDING
        assert await office.state(before) is ApprovalState.SUPERSEDED
        assert await office.claim(before) is None


async def test_another_credential_at_the_last_moment_stops_the_run(office: Office) -> None:
    """Ours: the stored credentials are compared in the transaction of the claim, too (SAF-3)."""
    asked = await office.open()
    await office.approve(asked)
    async with office.catalog.store.transaction(office.tenant) as db:
        await db.execute(text("update approvals set credentials = 'another'"))

    assert await office.claim(asked) is None
    assert await office.state(asked) is ApprovalState.APPROVED


async def test_a_denial_holds_for_an_hour(office: Office) -> None:
    """Ours: an equal call reads the denial instead of asking again; afterwards it may ask."""
    asked = await office.open()
    await decide_approval(office.tenant, office.catalog, asked.id, NO, by=person())
    assert (await office.open()).id == asked.id
    assert (await office.open(office.call(tool_digest="bb"))).id != asked.id

    await office.pass_time("ended_at", timedelta(hours=2))
    assert (await office.open()).id != asked.id


async def test_an_approver_learns_of_an_earlier_run(office: Office) -> None:
    """Ours: that an equal call was interrupted before is the first warning of the next approval (R4)."""
    asked = await office.open()
    await office.approve(asked)
    await office.claim(asked)
    await office.pass_time("leased_until", timedelta(minutes=1))
    again = await office.open()

    assert await office.state(asked) is ApprovalState.UNKNOWN
    assert "interrupted" in again.warnings[0]
    assert again.warnings[1:] == SHOWN.warnings


async def test_a_revoked_key_runs_nothing(office: Office) -> None:
    """Ours: the key of the caller is valid when its approved call starts, not only when it asked."""
    asked = await office.open()
    await office.approve(asked)
    by = Author(caller=Operator(), correlation_id="t")
    await KEYS.revoke(office.tenant, office.catalog, office.agent.key, by=by)

    assert await office.claim(asked) is None
    assert await office.state(asked) is ApprovalState.APPROVED


async def test_a_denied_person_runs_nothing(office: Office) -> None:
    """Ours: a denial reaches the keys of the same subject, and calls that were approved before (TEN-2)."""
    asked = await office.open()
    await office.approve(asked)
    async with office.catalog.store.transaction(office.tenant) as db:
        issuer = replace(make_issuer("acme"), name=office.agent.subject)
        await issuers.insert(office.tenant, db, issuer)
        person = replace(make_person(office.tenant, issuer), subject=office.agent.subject)
        await people.enter(office.tenant, db, person)
        await people.set_denied(office.tenant, db, person.id, at=NOW)

    assert await office.claim(asked) is None
    async with office.catalog.store.transaction(office.tenant) as db:
        await people.set_denied(office.tenant, db, person.id, at=None)
    assert await office.claim(asked) is not None


async def test_a_call_that_waited_runs_only_in_the_catalog_it_was_prepared_in(office: Office) -> None:
    """Ours: a tool or policy may have changed while a call waited; it is called again and compared then."""
    asked = await office.open()
    await office.approve(asked)

    assert await office.claim(asked, office.call(revision=1)) is None
    async with office.catalog.store.transaction(office.tenant) as db:
        revision = (await db.execute(text("select revision from tenants"))).scalar_one()
    assert await office.claim(asked, office.call(revision=revision)) is not None


async def test_open_approvals_are_bounded(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: neither one subject nor one tenant fills the table; equal calls still attach."""
    monkeypatch.setattr(approvals, "MAX_OPEN_OF_SUBJECT", 2)
    monkeypatch.setattr(approvals, "MAX_OPEN_APPROVALS", 3)
    for number in range(2):
        await office.open(office.call(digest=bytes([number])))
    with pytest.raises(LimitExceeded, match="of this subject") as refused:
        await office.open(office.call(digest=b"third"))
    assert refused.value.retry_after_s == 60, "tasks without room must not ask every two seconds"
    await office.open(office.call(digest=b"\0"))

    other = replace(office.agent, subject="another bot")
    await office.open(office.call(principal=other))
    with pytest.raises(LimitExceeded, match="of the tenant"):
        await office.open(office.call(principal=other, digest=b"next"))


async def test_ended_approvals_are_deleted(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: after 30 days, and beyond the newest 10,000; open ones stay."""
    monkeypatch.setattr(approvals, "MAX_KEPT", 1)
    made = [await office.open(office.call(digest=bytes([number]))) for number in range(4)]
    for one in made[:3]:
        await decide_approval(office.tenant, office.catalog, one.id, NO, by=person())
    await office.sweep()
    left = await page_approvals(office.tenant, office.catalog, ApprovalFilter(), after=None, limit=10)
    assert [one.id for one in left] == [made[3].id, made[2].id]

    await office.pass_time("ended_at")
    await office.sweep()
    left = await page_approvals(office.tenant, office.catalog, ApprovalFilter(), after=None, limit=10)
    assert [one.id for one in left] == [made[3].id]


async def test_a_page_is_filtered_by_the_database(office: Office) -> None:
    """Ours: state, tool and subject; newest first."""
    first = await office.open()
    second = await office.open(office.call(tool="other"))
    await office.approve(first)

    async def ids(**wanted: Any) -> list[ApprovalId]:
        found = await page_approvals(
            office.tenant,
            office.catalog,
            ApprovalFilter(**wanted),
            after=None,
            limit=10,
        )
        return [one.id for one in found]

    assert await ids() == [second.id, first.id]
    assert await ids(state=ApprovalState.APPROVED) == [first.id]
    assert await ids(tool="other") == [second.id]
    assert await ids(subject="nobody") == []
    assert await ids(subject="bot", tool="other", state=ApprovalState.PENDING) == [second.id]


async def test_the_request_of_an_approval_is_sealed(office: Office) -> None:
    """Ours: request and warnings are sealed with the tenant's data key, bound to the approval (TEN-4)."""
    asked, other = await office.open(), await office.open(office.call(digest=b"other"))
    async with office.catalog.store.transaction(office.tenant) as db:
        rows = [dict(row) for row in (await db.execute(text("select * from approvals"))).mappings()]
        assert b"the-secret-body" not in repr(rows).encode()
        swap = "update approvals set sealed = (select sealed from approvals where id = :a) where id = :b"
        await db.execute(text(swap), {"a": asked.id, "b": other.id})

    assert (await get_approval(office.tenant, office.catalog, asked.id)).request == SHOWN.request
    with pytest.raises(Exception, match="No configured secret key decrypts"):
        await get_approval(office.tenant, office.catalog, other.id)


async def test_there_is_no_approval_of_another_tenant(office: Office) -> None:
    """Ours: not found and not yours look the same."""
    asked = await office.open()
    for tenant, name in ((TenantId("ten_other"), asked.id), (office.tenant, "apr_none")):
        with pytest.raises(NotFound):
            await get_approval(tenant, office.catalog, name)


def _waiting_call(office: Office, timeout_s: float) -> Invocation:
    journal = CallJournal()
    peer = TalkingPeer(approval_timeout_s=timeout_s)
    action = ("call", "delete_pet")
    return Invocation(CallPipeline(journal, journal), office.agent, peer, None, correlation_id="c", action=action)


async def _attach(*_: object) -> Any:
    raise NotFound("no call of this test runs")


def _spawn(*_: object) -> None:
    """No run holds a lease in these tests."""


async def test_a_replica_lets_only_so_many_calls_wait(office: Office) -> None:
    """Ours: a call beyond the tenant's share of waiting calls ends at once, and its approval stays (TEN-3)."""
    station, asked = ApprovalStation(office.catalog, spawn=_spawn, attach=_attach), await office.open()
    anna = new_key(Scope.APPROVE, subject="anna")  # else no call waits at all
    await KEYS.create(office.tenant, office.catalog, anna, by=Author(caller=Operator(), correlation_id="t"))
    for _ in range(station.slot_pool.share):
        assert station.slot_pool.try_take(office.tenant)

    with anyio.fail_after(5):
        assert await station.wait(_waiting_call(office, 60), asked) is ApprovalState.PENDING


async def test_a_wait_ends_without_the_event(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: an event can be lost; the state is read again every few seconds, and no place is left behind."""
    monkeypatch.setattr("gateway.calls.approval.APPROVAL_POLL_S", 0.02)
    station, asked = ApprovalStation(office.catalog, spawn=_spawn, attach=_attach), await office.open()
    anna = new_key(Scope.APPROVE, subject="anna")
    await KEYS.create(office.tenant, office.catalog, anna, by=Author(caller=Operator(), correlation_id="t"))
    states: list[ApprovalState] = []

    async def wait() -> None:
        states.append(await station.wait(_waiting_call(office, 60), asked))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            await office.approve(asked)
    assert states == [ApprovalState.APPROVED]
    assert station.slot_pool.busy == 0


async def test_a_database_that_is_away_for_a_moment_ends_no_wait(
    office: Office, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a task may wait for hours; a look that fails is made again, because nothing has run (SAF-3, REL-1)."""
    monkeypatch.setattr("gateway.calls.approval.APPROVAL_POLL_S", 0.02)
    asked, states = await office.open(), list[ApprovalState]()
    async with Store(database_url, pool_size=1, timeout_s=0.02) as busy:
        station = ApprovalStation(replace(office.catalog, store=busy), spawn=_spawn, attach=_attach)

        async def wait() -> None:
            states.append(await station.wait(_waiting_call(office, math.inf), asked))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                async with busy.transaction(office.tenant):
                    refused = busy.slot_pool.refused
                    group.start_soon(wait)
                    while busy.slot_pool.refused == refused:  # noqa: ASYNC110  # bounded
                        await anyio.sleep(0.01)
                await office.approve(asked)
    assert states == [ApprovalState.APPROVED]


async def test_approvals_of_redefined_tools_end_in_batches(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: all open approvals of these tools that are older than the change, each audited; no others (OAS-6)."""
    monkeypatch.setattr("gateway.catalog.calls.approvals._SWEEP_BATCH", 2)
    older = [await office.open(office.call(digest=b"%d" % number)) for number in range(4)]
    other = await office.open(office.call(tool="get_pet"))
    await office.approve(older[0])
    await office.pass_time("created_at", timedelta(minutes=1))
    changed_at = datetime.now(UTC) - timedelta(seconds=30)
    newer = await office.open(office.call(digest=b"newer"))

    await supersede_approvals(office.tenant, office.catalog, ["delete_pet"], before=changed_at)

    assert {await office.state(each) for each in older} == {ApprovalState.SUPERSEDED}
    assert {await office.state(each) for each in (other, newer)} == {ApprovalState.PENDING}
    assert office.actions.count("approval.superseded") == 4


async def test_approvals_end_with_the_definition_of_their_tool(office: Office) -> None:
    """Ours: changes and removals of own tools, overrides and sources end approvals; other changes do not (SAF-3)."""
    tenant, catalog = office.tenant, office.catalog
    handler: dict[str, Any] = {"kind": "http", "method": "DELETE", "url": "https://api.example/x"}
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    definition: dict[str, Any] = {"name": "wipe", "description": "Wipes", "inputSchema": schema}
    by = Author(caller=Operator(), correlation_id="t")
    await create_own(tenant, catalog, Family.TOOL, {"definition": definition, "handler": handler}, by=by)
    await import_source(tenant, catalog, SourceDraft(name="pets", document=pets("https://pets.example")), by=by)

    live = await declare_live(tenant, catalog, live_draft("editor", LiveKind.AGENT), by=by)
    offer = offer_of(offered_tool("save"), offered_tool("wipe"), title="editor")
    assert await record_attached(tenant, catalog, live, attachment="att_1", replica="one", discovery=offer)

    async def override(**fields: Any) -> None:
        await override_tool(tenant, catalog, "delete_pet", lambda found: replace(found, **fields), by=by)

    other: dict[str, Any] = {**definition, "description": "Wipes all"}
    ending: dict[str, Callable[[], Awaitable[object]]] = {
        "wipe redefined": lambda: change_own(tenant, catalog, Family.TOOL, "wipe", {"definition": other}, by=by),
        "save removed": lambda: LIVE_SOURCES.remove(tenant, catalog, "editor", by=by),
        "wipe removed": lambda: TOOLS.remove(tenant, catalog, "wipe", by=by),
        "delete_pet described": lambda: override(description="Deletes"),
        "delete_pet reset": lambda: reset_tool(tenant, catalog, "delete_pet", by=by),
        "delete_pet removed": lambda: remove_source(tenant, catalog, "pets", by=by),
    }
    untouched = await office.open(office.call(tool="get_dog", digest=b"another call"))
    for case, end in ending.items():
        asked = await office.open(office.call(tool=case.split()[0], digest=case.encode()))
        if case == "wipe redefined":
            await change_own(tenant, catalog, Family.TOOL, "wipe", {"enabled": False}, by=by)
        if case == "delete_pet described":
            await override(hidden=True)
        assert await office.state(asked) is ApprovalState.PENDING, case
        own = await office.open(office.call(tool="wipe", digest=b"own tool of the same name"))
        await end()
        assert await office.state(asked) is ApprovalState.SUPERSEDED, case
        assert case != "save removed" or await office.state(own) is ApprovalState.PENDING
    assert await office.state(untouched) is ApprovalState.PENDING
