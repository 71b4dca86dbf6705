"""Approvals of a tenant's calls: creation, decision by another subject, claim for one run, and end.

Each change of state is a conditional update with an audit entry, which is stored before the transaction commits. The
job `sweep` ends overdue approvals and deletes old ones.
"""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import structlog

from gateway.catalog.calls.approval_changes import ApprovalChanges, read_approval, subject_of
from gateway.catalog.calls.caller_rights import may_call
from gateway.catalog.calls.limits import MAX_KEPT, MAX_OPEN_APPROVALS, MAX_OPEN_OF_SUBJECT, QUEUE_RETRY_S
from gateway.catalog.etags import Expected, check_version
from gateway.catalog.transaction import Author, CatalogContext, announce
from gateway.domain.audit import CallRecord, RuleKind
from gateway.domain.calls.approvals import Approval, ApprovalFilter, ApprovalState, RequestShown, is_same_subject
from gateway.domain.events import ApprovalChanged
from gateway.domain.identifiers import ApprovalId, KeyId, TenantId, new_approval_id
from gateway.domain.order import KEYED, Order
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Conflict, DecidingRule, Forbidden, LimitExceeded, SecretUnreadable, Unavailable
from gateway.store import idempotency, jobs, tenants
from gateway.store.calls import approvals
from gateway.store.calls.approvals import Claim
from gateway.store.calls.credential_uses import CredentialUse, credential_identity
from gateway.store.engine import Db
from gateway.store.jobs import Job
from gateway.store.kinds.singletons import POLICY

log = structlog.get_logger(__name__)

KIND = "approvals"
"""Kind, and id within the tenant, of the job that ends approvals."""

LIFETIME = timedelta(hours=24)
"""Time in which a person can decide."""
USABLE = timedelta(hours=1)
"""Time after the decision in which the call can run."""
DENIED_FOR = timedelta(hours=1)
"""Time after a denial in which equal calls are refused without a new approval."""
LEASE = timedelta(seconds=30)
"""Time for which a run holds its approval; the replica renews it while the call runs."""
ROUND_LEASE = timedelta(minutes=11)
"""Lease of a run between two rounds of its call; the client's state of a round is valid for ten minutes."""
KEPT = timedelta(days=30)


_PRIOR_RUN = {
    ApprovalState.DONE: "The same call was approved and run before, until {}.",
    ApprovalState.UNKNOWN: "The same call was approved and interrupted at {}; it may have been carried out.",
}
_SWEEP_BATCH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class CallToApprove:
    """A prepared call of one principal, to which an approval is bound.

    `digest` covers the prepared call, `tool_digest` the definition and handler. `revision` is that of the catalog in
    which the tool was found. It is None in a later round, because the client's sealed state names the tool and policy.
    """

    principal: Principal
    profile: str | None
    action: str
    tool: str
    tool_digest: str
    policy_version: int
    revision: int | None = None
    digest: bytes
    correlation_id: str
    uses: CredentialUse

    @property
    def fingerprint(self) -> bytes:
        """Digest of requester and call. Equal calls of one subject in one profile have the same fingerprint."""
        parts = (self.principal.subject, self.profile, self.action, self.tool, self.digest)  # guard: approval-exact
        return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=32).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """A call as a person sees it before the decision."""

    request: RequestShown
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalVerdict:
    """A decision about a pending approval."""

    is_approved: bool
    comment: str = ""


async def open_approval(
    tenant: TenantId, catalog: CatalogContext, call: CallToApprove, show: Callable[[], Awaitable[ShownCall]]
) -> Approval:
    """Return the open approval of an equal call, or create one; `show` is awaited only for a new one.

    A new approval supersedes an open one of the same call if its tool, policy or credential has changed.

    Raises:
        Forbidden: the key of the call lacks the scope `mcp`, or is no longer valid.
        LimitExceeded: the tenant or the subject has too many open approvals.
        AuditUnavailable: the request could not be recorded.
    """
    changes = ApprovalChanges(tenant, catalog)
    async with catalog.store.transaction(tenant) as db:
        found = await _attach(tenant, catalog, db, call, changes=changes)
    await changes.announce()
    if found is not None:
        return found
    shown, changes = await show(), ApprovalChanges(tenant, catalog)
    async with catalog.store.transaction(tenant) as db:
        await approvals.lock(tenant, db)
        found = await _attach(tenant, catalog, db, call, changes=changes)
        if found is None:
            if not await may_call(tenant, db, call.principal.key):
                raise Forbidden("a call that needs an approval needs a valid key with the scope mcp")
            await _check_open_limit(tenant, db, call.principal.subject)
            found = await _insert(tenant, catalog, db, call, shown=shown)
            await changes.record_change(db, found.id)
    await changes.announce()
    return found


async def get_approval(tenant: TenantId, catalog: CatalogContext, approval: str) -> Approval:
    """The approval with this id.

    Raises:
        NotFound: the tenant has no such approval.
    """
    async with catalog.store.transaction(tenant) as db:
        return await read_approval(tenant, catalog, db, ApprovalId(approval))


async def state_of(tenant: TenantId, catalog: CatalogContext, approval: ApprovalId) -> ApprovalState | None:
    """The state of an approval; None if it does not exist."""
    async with catalog.store.transaction(tenant) as db:
        return await approvals.state_of(tenant, db, approval)


async def page_approvals(
    tenant: TenantId,
    catalog: CatalogContext,
    wanted: ApprovalFilter | None = None,
    *,
    after: str | None,
    limit: int,
    order: Order = KEYED,
) -> Sequence[Approval]:
    """One page of the tenant's approvals that match a filter, the newest first; they have no other order."""
    del order
    async with catalog.store.transaction(tenant) as db:
        return await approvals.page(
            tenant, db, catalog.sealer, after=after, limit=limit, filters=wanted or ApprovalFilter()
        )


async def decide_approval(
    tenant: TenantId,
    catalog: CatalogContext,
    approval: str,
    verdict: ApprovalVerdict,
    *,
    by: Author,
    expected: Expected = None,
) -> Approval:
    """Approve or deny a pending call, and return the approval; its audit entry is stored before the decision commits.

    Raises:
        NotFound: the tenant has no such approval.
        Forbidden: the author lacks the scope `approve`, or has the subject of the requester.
        Conflict: the approval is no longer pending, or the tenant's policy has changed since the call was made.
        PreconditionFailed: the current version matches no expected tag.
        AuditUnavailable: the decision could not be recorded, so it was not made.
    """
    if isinstance(by.caller, Principal) and Scope.APPROVE not in by.caller.scopes:  # guard: approval-scope
        raise Forbidden("the key lacks the scope approve")
    subject, state = subject_of(by), ApprovalState.APPROVED if verdict.is_approved else ApprovalState.DENIED
    who = {"decided_by": by.caller.name, "decider_subject": subject}
    decided: dict[str, object] = {"state": state.value, "comment": verdict.comment, **who}
    changes = ApprovalChanges(tenant, catalog)
    async with catalog.store.transaction(tenant) as db:
        current = await read_approval(tenant, catalog, db, ApprovalId(approval))
        check_version(current, expected)
        if is_same_subject(current.subject, subject):  # guard: approval-by-another-subject
            message = "the subject that requested the call cannot decide on it; ask another person"
            raise Forbidden(message, rule=DecidingRule(RuleKind.OWNER))
        is_current = current.policy_version == (await POLICY.get(tenant, db)).version
        is_void = verdict.is_approved and not is_current  # guard: approval-of-this-policy
        found = None
        if not (is_void and await changes.supersede(db, current.id)):
            found = await _decide(tenant, db, current, decided, by=by, changes=changes)
    await changes.announce()
    if found is None:
        raise Conflict("the tenant's policy has changed since the call was made; the call has to be made again")
    return found


async def _decide(
    tenant: TenantId, db: Db, current: Approval, decided: dict[str, object], *, by: Author, changes: ApprovalChanges
) -> Approval:
    if not await approvals.decide(tenant, db, current.id, decided=decided, usable=USABLE):
        now = await approvals.state_of(tenant, db, current.id)
        raise Conflict(f"the approval is {now or current.state} and can no longer be decided")
    if by.attempt is not None and not await idempotency.commit(tenant, db, by.attempt):
        raise Conflict("the request took too long, and another replica repeated it; this attempt changed nothing")
    await _make_sweep_due(tenant, db, USABLE)
    return await changes.record_change(db, current.id, by)


async def claim_approval(
    tenant: TenantId,
    catalog: CatalogContext,
    approval: ApprovalId,
    call: CallToApprove,
    *,
    intent: CallRecord,
    earlier: str | None = None,
) -> str | None:
    """Claim an approved call for one run, and return the claim; None if it cannot run.

    The state and the audit intent are stored before the caller contacts the upstream. `earlier` is the claim of an
    earlier round of the same call, which continues. If the call has a revision, the catalog must still have it.

    Raises:
        AuditUnavailable: the intent could not be recorded; the approval can still be used.
    """
    async with catalog.store.transaction(tenant) as db:
        if not await may_call(tenant, db, call.principal.key):  # guard: approval-key-valid
            return None
        if call.revision not in {None, await tenants.revision(tenant, db)}:  # guard: approval-catalog-current
            return None
        credentials = await credential_identity(tenant, db, call.uses)
        claim = Claim(name=secrets.token_hex(16), credentials=credentials, lease=LEASE)
        if earlier is None:
            is_claimed = await approvals.claim(tenant, db, approval, claim)
        else:
            is_claimed = await approvals.take_over(tenant, db, approval, claim, earlier=earlier)
        if not is_claimed:
            return None
        await _make_sweep_due(tenant, db, LEASE)
        await catalog.audit(intent)  # guard: approval-intent-first
    await announce(catalog, ApprovalChanged(tenant=tenant, approval=approval))
    return claim.name


async def renew_claims(tenant: TenantId, catalog: CatalogContext, claims: Sequence[str]) -> None:
    """Extend the leases of runs."""
    async with catalog.store.upkeep(tenant) as db:
        await approvals.renew(tenant, db, claims, lease=LEASE)


async def park_approval(tenant: TenantId, catalog: CatalogContext, approval: ApprovalId, claim: str) -> bool:
    """Keep the lease of a run until the next round of its call; False if the lease has expired."""
    async with catalog.store.transaction(tenant) as db:
        return await approvals.park(tenant, db, approval, claim, lease=ROUND_LEASE)


async def finish_approval(
    tenant: TenantId, catalog: CatalogContext, approval: ApprovalId, claim: str, *, outcome: str | None
) -> bool:
    """Store the outcome of a run; False if its lease has expired, so that the outcome stays unknown.

    None is the outcome of a run that sent nothing: the approval can be used again, and no webhook is sent.
    """
    async with catalog.store.transaction(tenant) as db:
        is_stored = await approvals.finish(tenant, db, approval, claim, outcome=outcome)
        changes = ApprovalChanges(tenant, catalog)
        if outcome is not None:
            await changes.enqueue(db, await read_approval(tenant, catalog, db, approval))
    await changes.announce()
    return is_stored


async def supersede_approvals(
    tenant: TenantId, catalog: CatalogContext, tools: Collection[str], *, before: datetime, action: str = "call"
) -> None:
    """End the open approvals of calls of tools that a catalog change has redefined or removed, or of another action.

    Callers and approvers see it at once. Without it, the next equal call would end them, so a failure is only logged.
    """
    count = _SWEEP_BATCH if tools else 0
    try:
        while count == _SWEEP_BATCH:
            changes = ApprovalChanges(tenant, catalog)
            async with catalog.store.transaction(tenant) as db:
                ended = await approvals.supersede_of_tools(
                    tenant, db, tools, before=before, limit=_SWEEP_BATCH, action=action
                )
                for approval in ended:
                    await changes.record_change(db, approval)
            await changes.announce()
            count = len(ended)
    except (Unavailable, SecretUnreadable) as error:
        log.warning("approvals_not_superseded", tenant_id=tenant, reason=error.message)


async def sweep(catalog: CatalogContext, due: Job) -> None:
    """End a tenant's overdue approvals, delete old ones, and move the job to the time at which it is due again."""
    tenant, changes = due.tenant, ApprovalChanges(due.tenant, catalog)
    async with catalog.store.upkeep(tenant) as db:
        if not await jobs.reschedule(tenant, db, due.id, seen=due.due_at, to=datetime.now(UTC) + LEASE):
            return
        for ended in await approvals.end_overdue(tenant, db, limit=_SWEEP_BATCH):
            await changes.record_change(db, ended)
        await approvals.remove_old(tenant, db, kept=KEPT, limit=MAX_KEPT)
        next_at = await approvals.next_due(tenant, db, kept=KEPT)
        if next_at is None:
            await jobs.remove(tenant, db, due.id)
        else:
            await jobs.schedule(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=next_at))
    await changes.announce()


async def _attach(
    tenant: TenantId, catalog: CatalogContext, db: Db, call: CallToApprove, *, changes: ApprovalChanges
) -> Approval | None:
    """Return the open approval of an equal call, unless a new one is required."""
    for ended in await approvals.end_overdue(tenant, db, limit=1, fingerprint=call.fingerprint):
        await changes.record_change(db, ended)
    attached = await approvals.get_attached(tenant, db, catalog.sealer, call.fingerprint, denied_for=DENIED_FOR)
    if attached is None:
        return None
    found, credentials = attached
    facts = (call.tool_digest, call.policy_version, await credential_identity(tenant, db, call.uses))
    is_same = facts == (found.tool_digest, found.policy_version, credentials)  # guard: approval-superseded
    if is_same or found.state is ApprovalState.RUNNING:
        return found
    await changes.supersede(db, found.id)
    return None


async def _insert(
    tenant: TenantId, catalog: CatalogContext, db: Db, call: CallToApprove, *, shown: ShownCall
) -> Approval:
    now, warnings = datetime.now(UTC), shown.warnings
    if (ran := await approvals.last_run(tenant, db, call.fingerprint)) is not None:
        warnings = (_PRIOR_RUN[ran[0]].format(ran[1].astimezone(UTC).isoformat(timespec="seconds")), *warnings)
    approval = Approval(
        id=new_approval_id(),
        tenant=tenant,
        state=ApprovalState.PENDING,
        requester=call.principal.name,
        subject=call.principal.subject,
        key=KeyId(call.principal.key),
        profile=call.profile,
        action=call.action,
        tool=call.tool,
        tool_digest=call.tool_digest,
        policy_version=call.policy_version,
        digest=call.digest,
        request=shown.request,
        warnings=warnings,
        correlation_id=call.correlation_id,
        created_at=now,
        expires_at=now + LIFETIME,
    )
    credentials = await credential_identity(tenant, db, call.uses)
    sealer, fingerprint = catalog.sealer, call.fingerprint
    await approvals.insert(tenant, db, sealer, approval, fingerprint=fingerprint, credentials=credentials)
    await _make_sweep_due(tenant, db, LIFETIME)
    return approval


async def _make_sweep_due(tenant: TenantId, db: Db, within: timedelta) -> None:
    """Make the sweep due at the deadline of this change, unless it is due earlier."""
    await jobs.bring_forward(tenant, db, Job(tenant=tenant, id=KIND, kind=KIND, due_at=datetime.now(UTC) + within))


async def _check_open_limit(tenant: TenantId, db: Db, subject: str) -> None:
    of_tenant, of_subject = await approvals.count_open(tenant, db, subject)
    if of_subject >= MAX_OPEN_OF_SUBJECT:  # guard: approvals-capped-by-subject
        message = f"too many calls of this subject wait for an approval or run (limit {MAX_OPEN_OF_SUBJECT})"
        raise LimitExceeded(f"{message}; wait until they are decided", limit="approvals", retry_after_s=QUEUE_RETRY_S)
    if of_tenant >= MAX_OPEN_APPROVALS:  # guard: approvals-capped
        message = f"too many calls of the tenant wait for an approval or run (limit {MAX_OPEN_APPROVALS})"
        raise LimitExceeded(f"{message}; wait until they are decided", limit="approvals", retry_after_s=QUEUE_RETRY_S)
