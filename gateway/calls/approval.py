"""Approval of a call by another person: requests it, waits for the decision, claims it for one run, stores the outcome.

A call that is not approved in time ends with `ApprovalRequired`; a later equal call uses the same approval. A
waiting call holds no slot of its tenant's concurrent calls. The replica renews the lease of each approved call while it
runs. If the replica dies, the sweep marks the outcome as unknown.
"""

import asyncio
import hashlib
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Final

import anyio
import msgspec
import structlog

from gateway.calls.approval_refusal import facts_of, refuse
from gateway.calls.invocation import Invocation, PrimitiveLookup
from gateway.calls.limits import APPROVAL_POLL_S, FINISH_S, MAX_WAITING
from gateway.calls.policy import describe_reason
from gateway.calls.risk_warnings import describe_risk, show_call
from gateway.calls.safeguards import BoundCall, LookupRenewed
from gateway.catalog.calls.approval_changes import page_of
from gateway.catalog.calls.approvals import (
    LEASE,
    CallToApprove,
    ShownCall,
    claim_approval,
    finish_approval,
    get_approval,
    open_approval,
    park_approval,
    renew_claims,
    state_of,
)
from gateway.catalog.identity.keys import has_approver
from gateway.catalog.transaction import CatalogContext
from gateway.domain.audit import AuditKind
from gateway.domain.calls.approvals import Approval, ApprovalState
from gateway.domain.events import ApprovalChanged
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import ApprovalId, TenantId
from gateway.domain.primitives import Primitive
from gateway.domain.refusals import AccountRequired, ApprovalRequired
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import PrimitiveOrigin, Tool
from gateway.errors import ClientSilent, GatewayError, NotFound, PolicyDenied, Unavailable
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Handler, InputRequest, InputRequired, Prepared
from gateway.store.calls.credential_uses import CredentialUse

log = structlog.get_logger(__name__)

APPROVE: Final = "gateway/approve"
"""Key of the client request that opens the approval's page."""
APPROVED: Final = "gateway/approved"
"""Key under which a call stores its approval, its claim and the digest of its content for later rounds."""

_RENEW_S = LEASE.total_seconds() / 3
_PROGRESS_STEP = 1e-6
"""Progress of a waiting call; smaller than later values from its handler, because progress must increase."""


Attach = Callable[[Principal, str], Awaitable[PrimitiveLookup]]
"""Returns the current primitives of a principal in a profile; raises NotFound without tenant or profile."""


class ApprovalStation:
    """Requests, awaits and claims the approvals of the calls on this replica."""

    def __init__(self, catalog: CatalogContext, *, spawn: Spawn, attach: Attach) -> None:
        self.catalog = catalog
        self._attach = attach
        self.slot_pool = FairSlotPool("calls that wait for an approval", slots=MAX_WAITING)
        self._spawn = spawn
        self._waiting: dict[tuple[TenantId, ApprovalId], set[asyncio.Event]] = {}
        self._claims: dict[str, TenantId] = {}
        self._is_renewing = False

    def note(self, event: ApprovalChanged) -> None:
        """Wake the calls that wait for this approval."""
        for waiting in self._waiting.get((event.tenant, event.approval), ()):
            waiting.set()

    def recheck_all(self) -> None:
        """Wake all waiting calls, because an event may have been lost."""
        for waiting in [one for calls in self._waiting.values() for one in calls]:
            waiting.set()

    def approved(self, call: Invocation, bound: BoundCall, handler: Handler[Any], prepared: Prepared) -> "ApprovedRun":
        """Return a context manager that yields the prepared call once it is approved, and stores its outcome."""
        return ApprovedRun(self, call, bound, handler, prepared=prepared)

    async def wait(self, call: Invocation, approval: Approval) -> ApprovalState:
        """Wait for the decision, at most for the time that the client may wait; return the approval's state.

        A request of a session does not wait in a tenant without an approver, because only the operator can decide.

        Raises:
            LimitExceeded: no slot of the tenant's concurrent calls is free after the wait.
        """
        tenant, timeout_s = call.principal.tenant, call.peer.approval_timeout_s
        is_bounded = math.isfinite(timeout_s)
        if is_bounded and call.is_renewed:  # the call has waited once
            return approval.state
        if timeout_s <= 0 or (is_bounded and not self.slot_pool.try_take(tenant)):  # guard: approval-waits-capped
            return approval.state
        try:
            async with call.waiting():  # guard: approval-wait-holds-no-slot
                if is_bounded and not await has_approver(tenant, self.catalog, call.principal.subject):
                    return approval.state
                return await self._follow(call, approval, timeout_s)
        finally:
            if is_bounded:
                self.slot_pool.free(tenant)

    async def _follow(self, call: Invocation, approval: Approval, timeout_s: float) -> ApprovalState:
        key, changed = (call.principal.tenant, approval.id), asyncio.Event()
        self._waiting.setdefault(key, set()).add(changed)
        until, state, steps = anyio.current_time() + timeout_s, approval.state, 0
        try:
            while state is ApprovalState.PENDING and anyio.current_time() < until:
                steps += 1
                await call.peer.note_wait(facts_of(self.catalog, approval))
                await call.peer.progress(steps * _PROGRESS_STEP, None, f"waiting for the approval {approval.id}")
                with anyio.move_on_after(
                    min(APPROVAL_POLL_S, until - anyio.current_time())
                ):  # the event may be lost, so the state is also polled
                    await changed.wait()
                changed.clear()
                with suppress(Unavailable):  # nothing has run; a task waits for hours and polls
                    state = await state_of(key[0], self.catalog, approval.id) or ApprovalState.EXPIRED
            await call.peer.note_wait(None)
            return state
        finally:
            self._waiting[key].discard(changed)
            if not self._waiting[key]:
                del self._waiting[key]

    async def renew_lookup(self, call: Invocation) -> None:
        """Give a call whose catalog has changed the current primitives, once.

        A call whose profile, policy, guardrails or access rules have changed keeps its primitives, so it cannot run.

        Raises:
            LookupRenewed: the call has to be prepared again.
            NotFound: the tool no longer exists.
        """
        earlier = call.lookup
        if earlier is None or call.is_inner or call.is_renewed:
            return
        current = await self._attach(call.principal, earlier.profile)
        is_same_scope = current.result_scope == earlier.result_scope  # guard: approval-same-rules
        if current.revision == earlier.revision or not is_same_scope:
            return
        call.lookup, call.is_renewed = current, True
        found = await current.tool(call.action[1])
        if found is None:
            raise NotFound("the tool was removed while the call waited for its approval; list the tools again")
        call.levels = found.tool.levels
        raise LookupRenewed(found)

    def hold(self, tenant: TenantId, claim: str) -> None:
        """Keep renewing the lease of a claim."""
        self._claims[claim] = tenant
        if not self._is_renewing:
            self._is_renewing = True
            self._spawn(self._renew)

    async def release(
        self, tenant: TenantId, approval: ApprovalId, claim: str, outcome: str | None, *, has_next_round: bool
    ) -> None:
        """End a run: store its outcome, or keep its approval for the next round of the call.

        Without an outcome, the run sent nothing, and the next equal call can use the approval. If the database is
        unavailable, the lease expires and the outcome becomes unknown.
        """
        self._claims.pop(claim, None)
        try:
            with anyio.move_on_after(FINISH_S, shield=True):
                if has_next_round:
                    is_stored = await park_approval(tenant, self.catalog, approval, claim)
                else:
                    is_stored = await finish_approval(tenant, self.catalog, approval, claim, outcome=outcome)
                if not is_stored:
                    log.warning("approval_outcome_late", approval=approval, outcome=outcome)
                return
            log.warning("approval_outcome_lost", approval=approval, outcome=outcome)
        except Unavailable as error:
            log.warning("approval_outcome_lost", approval=approval, outcome=outcome, reason=error.message)

    async def _renew(self) -> None:
        """Renew the leases of all runs until none is left."""
        try:
            while self._claims:
                await anyio.sleep(_RENEW_S)
                held: dict[TenantId, list[str]] = defaultdict(list)
                for claim, tenant in self._claims.items():
                    held[tenant].append(claim)
                for tenant, claims in held.items():
                    try:
                        await renew_claims(tenant, self.catalog, claims)
                    except Unavailable as error:
                        log.warning("approval_lease_not_renewed", claims=len(claims), reason=error.message)
                    except Exception:  # the leases of the others would expire
                        log.exception("approval_lease_not_renewed", claims=len(claims))
        finally:
            self._is_renewing = False


class ApprovedRun:
    """Context manager of one approved call: awaits and claims the approval on entry, stores the outcome on exit."""

    def __init__(
        self, station: ApprovalStation, call: Invocation, bound: BoundCall, handler: Handler[Any], *, prepared: Prepared
    ) -> None:
        self._station = station
        self._call = call
        self._subject = bound.tool if isinstance(bound, BoundTool) else bound.primitive
        self._handler = handler
        self._prepared = prepared
        self._held: tuple[ApprovalId, str] | None = None

    async def __aenter__(self) -> Prepared:
        """Return the call once it may run. Its request is sent at most once, even if its method is idempotent.

        Raises:
            LookupRenewed: the call has waited, and has to be prepared again in the current catalog.
            ApprovalRequired: the call is not approved, or its approval is no longer valid.
            InputRequired: the client has to open the approval's page first.
            LimitExceeded, CredentialMissing, AuditUnavailable: the approval cannot be requested or used now.
        """
        station, call = self._station, self._call
        asked = _describe(call, self._subject, self._prepared)
        earlier = call.peer.recall(APPROVED)
        if earlier is not None:
            if earlier[2] != _identity(asked):  # guard: approval-rounds-same
                raise PolicyDenied("the effect of the call has changed since it was approved; call again")
            return await self._claim(ApprovalId(earlier[0]), asked, earlier[1])
        approval = await open_approval(asked.principal.tenant, station.catalog, asked, self._show)
        state = approval.state
        if state is ApprovalState.PENDING:
            state = await self._await_decision(approval)
        if state is not ApprovalState.APPROVED:
            raise await self._refusal(approval.id)
        if isinstance(self._subject, Tool):
            await station.renew_lookup(call)
        revision = None if call.lookup is None else call.lookup.revision  # guard: approval-catalog-of-each-run
        return await self._claim(approval.id, replace(asked, revision=revision), None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._held is None:
            return
        has_next_round = isinstance(error, InputRequired)
        await self._station.release(
            self._call.principal.tenant, *self._held, self._outcome_of(error), has_next_round=has_next_round
        )

    def _outcome_of(self, error: BaseException | None) -> str | None:
        if error is None:
            return self._call.outcome
        is_single = self._prepared.request is not None  # steps may have sent other requests before
        if is_single and isinstance(error, AccountRequired) and not error.is_sent:  # guard: approval-given-back
            return None
        if isinstance(error, GatewayError):
            return error.code
        return "cancelled" if isinstance(error, anyio.get_cancelled_exc_class()) else "crashed"

    async def _await_decision(self, approval: Approval) -> ApprovalState:
        """Wait for the decision; a 2026-07-28 client with URL elicitation first receives the approval's page, once."""
        call, url = self._call, page_of(self._station.catalog, approval.id)
        if call.peer.approval_timeout_s > 0 or url is None or not call.peer.can("elicitation.url"):
            return await self._station.wait(call, approval)
        message = f"Another person must approve this call ({approval.id})."
        params = {"mode": "url", "message": message, "url": url}
        with suppress(ClientSilent):
            await call.peer.ask({f"{APPROVE}/{approval.id}": InputRequest(kind="elicitation", params=params)})
        return approval.state

    async def _claim(self, approval: ApprovalId, asked: CallToApprove, earlier: str | None) -> Prepared:
        call, station = self._call, self._station
        intent = call.record(AuditKind.CALL_INTENT, "intended")
        tenant = call.principal.tenant
        await call.peer.note_intent()  # guard: task-noted-before-approved-effects
        claim: str | None = None
        with anyio.CancelScope(shield=True):  # a cancellation between the commit and its response would lose the claim
            claim = await claim_approval(tenant, station.catalog, approval, asked, intent=intent, earlier=earlier)
        if claim is None:  # guard: approval-claimed
            call.recorded = intent.detail
            raise await self._refusal(approval)
        station.hold(tenant, claim)
        self._held = (approval, claim)
        call.peer.remember(APPROVED, [approval, claim, _identity(asked)])
        request = self._prepared.request
        if request is None:
            return self._prepared
        once = msgspec.structs.replace(request, idempotent=False)  # guard: approval-not-retried
        return msgspec.structs.replace(self._prepared, request=once)

    async def _refusal(self, approval: ApprovalId) -> ApprovalRequired:
        """Return the error with the current state of the approval."""
        catalog = self._station.catalog
        return await refuse(self._call, catalog, await get_approval(self._call.principal.tenant, catalog, approval))

    async def _show(self) -> ShownCall:
        preview = await self._handler.preview(self._prepared)
        shown = show_call(preview, self._prepared, self._call.action[1])
        reason, risks = describe_reason(self._call.judged), describe_risk(self._subject, self._prepared, shown, preview)
        return ShownCall(request=shown, warnings=(reason, *risks) if reason else risks)


def _describe(call: Invocation, subject: Tool | Primitive, prepared: Prepared) -> CallToApprove:
    found = call.lookup
    return CallToApprove(
        principal=call.principal,
        profile=call.principal.profile if found is None else found.profile,
        action=call.action[0],
        tool=call.action[1],
        tool_digest=_subject_digest(subject),
        policy_version=0 if found is None else found.policy_version,
        digest=exact_digest(prepared),
        correlation_id=call.correlation_id,
        uses=_credential_use(subject),
    )


def _identity(asked: CallToApprove) -> str:
    return f"{asked.digest.hex()}.{asked.tool_digest}.{asked.policy_version}"


def exact_digest(prepared: Prepared) -> bytes:
    """Digest of a prepared call: covers its own digest, and the method, URL, headers and body of its request."""
    request = prepared.request
    parts = None if request is None else (request.method, request.url, request.headers, request.body)
    # guard: approval-covers-the-request
    return hashlib.blake2b(msgspec.msgpack.encode((prepared.digest, parts)), digest_size=32).digest()


def _subject_digest(subject: Tool | Primitive) -> str:
    """Digest of a primitive's origin, source, definition and handler."""
    parts: tuple[object, ...] = (subject.origin, subject.source_name, subject.definition, subject.handler)
    if isinstance(subject, Tool):
        parts = (*parts, subject.source, subject.identity, subject.plan, subject.pinned, subject.result)
    return hashlib.blake2b(msgspec.msgpack.encode(parts), digest_size=16).hexdigest()


def _credential_use(subject: Tool | Primitive) -> CredentialUse:
    if subject.origin is PrimitiveOrigin.LIVE:
        return CredentialUse(live_source=subject.source_name)
    if isinstance(subject, Tool):
        return CredentialUse(source=subject.source, primitive=subject.primitive)
    return CredentialUse(primitive=subject.id)
