"""The pipeline of a call: authorise, limit, decide, validate, prepare, confirm or approve, run, render, record.

All calls of handlers go through `CallPipeline`: tools, resources, prompts, completions, and calls inside calls. Most
failures of a tool are results with `isError`. Refusals and all other failures are exceptions, which `protocol` and
`admin` translate.
"""

from collections.abc import Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from time import perf_counter_ns
from typing import Any, TypeVar

import structlog
from msgspec.structs import replace

from gateway.calls import result_rendering
from gateway.calls.arguments.acceptance import ArgumentAcceptance
from gateway.calls.arguments.costly_validation import CostlyValidation
from gateway.calls.field_selection import may_select, take_fields
from gateway.calls.guardrails.chain import Guardrails
from gateway.calls.invocation import Invocation, Limiter, PrimitiveLookup
from gateway.calls.limits import MAX_TEXT_BYTES
from gateway.calls.output_checks import ResultChecks, check_completions, check_contents, check_messages
from gateway.calls.policy import CONFIRM, CONFIRMED, REFUSALS, UNAPPROVED, Confirmation, ask_user, decide
from gateway.calls.prompts import check_arguments, embed_resources
from gateway.calls.recorded_call import AuditSink, RecordedCall, log_failure
from gateway.calls.safeguards import BoundCall, LookupRenewed, Safeguards
from gateway.calls.upstream_head import append_text
from gateway.definitions.json_schema.validator import Checked
from gateway.definitions.policy.argument_selection import ArgumentSelection
from gateway.domain.audit import AuditKind
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.refusals import AccountRequired, ApprovalRequired
from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.limits import MIN_SUMMARY_THRESHOLD
from gateway.domain.tenancy.policy import Decision, Judgement, Limits, Safety
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import FIELDS
from gateway.errors import (
    ArgumentsInvalid,
    BadInput,
    CallError,
    CapabilityMissing,
    GatewayError,
    NotFound,
    PolicyDenied,
    TemplateFailed,
    UpstreamError,
)
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTemplate, BoundTool
from gateway.handlers.interfaces import Handler, InputRequired, Peer, Prepared, UncheckedCall
from gateway.handlers.null_peer import NULL_PEER
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_HTTP_ERROR = 400
_ALLOW, _APPROVE, _SAFE = (
    Decision.ALLOW,
    Decision.APPROVE,
    Safety.SAFE,
)  # an enum lookup costs more than a function call
_RESULT_ERRORS = (BadInput, PolicyDenied, UpstreamError, CallError, TemplateFailed, NotFound)
"""Errors that become results of a tool, except `CapabilityMissing` and `AccountRequired`."""

_Result = TypeVar("_Result")


NO_SAFEGUARDS = Safeguards()


class CallPipeline:
    """The call pipeline of this replica."""

    def __init__(
        self,
        limiter: Limiter,
        audit: AuditSink,
        shaper: result_rendering.ResultRenderer | None = None,
        metrics: Metrics | None = None,
        *,
        safeguards: Safeguards = NO_SAFEGUARDS,
    ) -> None:
        self._approvals = safeguards.approvals
        checks = CostlyValidation()
        self.check_pool = checks.slot_pool
        self.check_processes = checks.processes
        self.acceptance = ArgumentAcceptance(checks)
        self._results = ResultChecks(checks)
        self._limiter = limiter
        self._audit = self.audit = audit
        self._shaper = shaper or result_rendering.ResultRenderer()
        self._metrics = metrics or Metrics()
        self._recorder = safeguards.recorder
        self.guardrails = safeguards.guardrails or Guardrails(audit, self._metrics)

    def run(
        self,
        principal: Principal,
        bound: BoundTool,
        arguments: Mapping[str, object],
        *,
        correlation_id: str,
        peer: Peer = NULL_PEER,
        lookup: PrimitiveLookup | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """Run one tool call to its end and return the members of its result object as JSON.

        Raises:
            NotFound, Forbidden: the principal may not call the tool.
            LimitExceeded: the limit of calls, of costly checks, or of a call inside this one is reached.
            AuditUnavailable: the call could not be recorded, so it has no result; it may have run.
            Unavailable, SecretUnreadable: a component or a secret that the call needs is unavailable.
            CapabilityMissing: a request to the client needs a capability that the client did not declare.
            AccountRequired: the caller has to connect an account at the upstream.
            InputRequired: the client has to respond to a request of the gateway, and call again.
        """
        action = ("call", bound.tool.name)
        call = Invocation(self, principal, peer, lookup, correlation_id=correlation_id, action=action)
        return self.call_tool(call, bound, arguments)

    def read(
        self,
        principal: Principal,
        bound: BoundResource,
        *,
        correlation_id: str,
        peer: Peer = NULL_PEER,
        lookup: PrimitiveLookup | None = None,
    ) -> Coroutine[Any, Any, Contents]:
        """Read one resource.

        Raises:
            InputRequired: the client has to respond to a request of the gateway, and read again.
            GatewayError: as for tools; also the errors that would be results of a tool (`_RESULT_ERRORS`).
        """
        call = Invocation(self, principal, peer, lookup, correlation_id=correlation_id, action=("read", bound.uri))
        return self.read_resource(call, bound)

    async def get_prompt(
        self,
        principal: Principal,
        bound: BoundPrompt,
        arguments: Mapping[str, str],
        *,
        correlation_id: str,
        peer: Peer = NULL_PEER,
        lookup: PrimitiveLookup | None = None,
    ) -> Messages:
        """Return the messages of one prompt.

        Raises:
            MissingArguments: required arguments are missing; the message names them all.
            ArgumentsInvalid: an argument is unknown or invalid.
            GatewayError, InputRequired: as for resources.
        """
        call = Invocation(
            self, principal, peer, lookup, correlation_id=correlation_id, action=("get", bound.primitive.name)
        )
        call.levels = bound.primitive.levels
        async with RecordedCall(call, bound, self._audit, self._metrics), self._admitted(call, bound.limits):
            check_arguments(bound, arguments)
            messages = await self._perform(call, bound, bound.handler, arguments)
            embedded = await embed_resources(messages, call)
            checked, call.size = check_messages(embedded, bound)
            if bound.guardrails:  # guard: guardrail-messages
                checked = await self.guardrails.check_messages(call, bound.guardrails, checked)
            return checked

    async def complete(
        self,
        principal: Principal,
        bound: BoundPrompt | BoundTemplate,
        argument: tuple[str, str],
        chosen: Mapping[str, str],
        *,
        correlation_id: str,
    ) -> Completions:
        """Return values for a prompt argument or a template variable; `argument` is its name and the text typed so far.

        Raises:
            ArgumentsInvalid: there is no argument of that name.
            GatewayError: as for resources.
        """
        call = Invocation(
            self, principal, NULL_PEER, None, correlation_id=correlation_id, action=("complete", bound.primitive.name)
        )
        async with RecordedCall(call, bound, self._audit, self._metrics), self._admitted(call, bound.limits):
            name, typed = argument
            if name not in bound.arguments:
                raise ArgumentsInvalid(f"there is no argument {name[:128]!r} to complete")
            call.judged = decide(bound, {**chosen, name: typed})
            if call.judged.decision is _APPROVE:  # guard: policy-approve-completions
                raise PolicyDenied("the tenant's policy requires an approval, so no values are offered")
            if bound.completer is None:
                return Completions(values=(), total=0)
            found = await bound.completer.complete(name, typed, chosen, call)
            return check_completions(found)

    async def call_tool(self, call: Invocation, bound: BoundTool, arguments: Mapping[str, object]) -> bytes:
        """Run the steps of a tool call in the order of the pipeline; see `run`."""
        call.source = bound.tool.source_name or bound.tool.origin
        call.levels = bound.tool.levels
        async with RecordedCall(call, bound, self._audit, self._metrics), self._admitted(call, bound.limits):
            try:
                members = await self._run_tool(call, bound, arguments)
            except (CapabilityMissing, AccountRequired):
                raise  # the interface of the call determines whether its client can receive questions
            except _RESULT_ERRORS as error:
                if isinstance(error, ApprovalRequired) and call.is_inner:
                    raise  # ends the outermost call, so that code after the inner call does not run
                log_failure(call, error)
                call.failure = error
                members = _end(call, error.code, result_rendering.failure(error, call.correlation_id))
            except (GatewayError, InputRequired):
                raise
            except Exception:  # guard: crash-without-details
                log.exception("call_failed", tool=bound.tool.name, correlation_id=call.correlation_id)
                return _end(call, "crashed", result_rendering.internal_error(call.correlation_id))
            if bound.guardrails:  # guard: guardrail-results
                members = await self.guardrails.check_members(call, bound.guardrails, members)
            if len(members) > MIN_SUMMARY_THRESHOLD and (threshold := call.summary_threshold):
                members = await self._shaper.summarise(call, members, threshold)
                call.size = len(members)
            return members

    async def _run_tool(self, call: Invocation, bound: BoundTool, arguments: Mapping[str, object]) -> bytes:
        if bound.policy.recorded is not None:
            self._record_arguments(call, bound.policy.recorded, arguments)
        if FIELDS in arguments and may_select(call, bound.tool):
            arguments, call.fields = take_fields(arguments)
        judged, handler = decide(bound), bound.handler
        settled = handler.settle(arguments)
        found = bound.validator.check(settled)
        if found or bound.validator.has_files:
            settled = await self._read(call, bound, settled, found)
        if bound.policy.rules:  # guard: policy-conditions
            judged = decide(bound, settled)
        if bound.guardrails:  # guard: guardrail-arguments
            await self.guardrails.check_call(call, bound.guardrails, settled)
        try:
            prepared = handler.prepare(settled)
        except UncheckedCall as unchecked:
            prepared = await self.acceptance.resume(bound.tenant, unchecked)
        call.digest = prepared.digest
        needs_person = judged.decision is not _ALLOW  # guard: policy-confirm
        if needs_person and await self._needs_approval(call, judged, handler, prepared):
            try:
                async with self._approved(call, bound, handler, prepared) as approved:
                    return await self._render(call, bound, await _run(call, handler, approved))
            except LookupRenewed as renewed:
                return await self._run_tool(call, renewed.bound, arguments)
        if bound.tool.level is not _SAFE:  # guard: intent-before-send
            await self._record_intent(call)
        return await self._render(call, bound, await _run(call, handler, prepared))

    async def read_resource(self, call: Invocation, bound: BoundResource) -> Contents:
        """Read a resource with the steps of `_perform`; see `read`."""
        call.levels = bound.primitive.levels
        async with RecordedCall(call, bound, self._audit, self._metrics), self._admitted(call, bound.limits):
            contents = await self._perform(call, bound, bound.handler, bound.variables)
            checked, call.size = await check_contents(contents, bound)
            if bound.guardrails:  # guard: guardrail-contents
                checked = await self.guardrails.check_contents(call, bound.guardrails, checked)
            return checked

    def _admitted(self, call: Invocation, limits: Limits) -> AbstractAsyncContextManager[None]:
        tenant, key = call.principal.tenant, call.principal.key
        if call.is_inner:
            return self._limiter.admit_inner(tenant, key, limits)
        call.slot = self._limiter.admit(tenant, key, limits)  # guard: rate-limit
        return call.slot

    def _approved(
        self, call: Invocation, bound: BoundCall, handler: Handler[Any], prepared: Prepared
    ) -> AbstractAsyncContextManager[Prepared]:
        if self._approvals is None:
            raise PolicyDenied(UNAPPROVED)
        return self._approvals.approved(call, bound, handler, prepared)

    async def _read(
        self, call: Invocation, bound: BoundTool, settled: Mapping[str, object], found: Checked
    ) -> Mapping[str, object]:
        """Return the arguments as they are read; from here on nothing sees them as they were sent."""
        read = await self.acceptance.accept(bound, settled, found)
        if read is not settled and bound.policy.recorded is not None:  # guard: coercion-recorded
            self._record_arguments(call, bound.policy.recorded, read)
        return read

    def _record_arguments(
        self, call: Invocation, selection: ArgumentSelection, arguments: Mapping[str, object]
    ) -> None:
        if self._recorder is not None:
            call.recorded = self._recorder.record(call.principal.tenant, selection, arguments)

    async def _record_intent(self, call: Invocation) -> None:
        await call.peer.note_intent()  # guard: task-noted-before-effects
        await self._audit.write(call.record(AuditKind.CALL_INTENT, "intended"))

    async def _needs_approval(
        self, call: Invocation, judged: Judgement, handler: Handler[Any], prepared: Prepared
    ) -> bool:
        """Return True if another person must approve the call; otherwise its user has confirmed it.

        Raises:
            PolicyDenied, CredentialMissing, InputRequired: see `_confirm`.
        """
        call.judged = judged
        if judged.decision is _APPROVE:  # guard: policy-approve
            return True
        return not await self._confirm(call, handler, prepared)  # guard: confirm-falls-back

    async def _confirm(self, call: Invocation, handler: Handler[Any], prepared: Prepared) -> bool:
        """Ask the user for confirmation; the audit trail records the request before it is sent, and then the outcome.

        Returns False if the client cannot ask its user; then another person must approve the call.

        Raises:
            PolicyDenied: the user declined or did not answer, or the call has changed since.
            CredentialMissing: the call cannot be made, so the user is not asked.
            InputRequired: the client's response comes with a later request.
        """
        digest = prepared.digest.hex()
        if call.peer.recall(CONFIRM) is None and call.peer.can("elicitation"):  # guard: confirm-asked-recorded
            await self._audit.write(replace(call.record(AuditKind.CALL, "asked"), action="confirm"))
        decided = await ask_user(call, digest, await handler.preview(prepared))
        if call.peer.recall(CONFIRMED) != digest:
            # guard: confirm-recorded
            await self._audit.write(replace(call.record(AuditKind.CALL, decided.value), action="confirm"))
            call.peer.remember(CONFIRMED, digest)
        if decided in REFUSALS:
            raise PolicyDenied(REFUSALS[decided])
        return decided is Confirmation.GRANTED

    async def _render(self, call: Invocation, bound: BoundTool, response: UpstreamResponse | Result) -> bytes:
        tenant = call.principal.tenant
        if isinstance(response, Result):
            members = await self._results.encode_checked(tenant, bound.output, response)
            return _end(call, "error" if response.is_error else "ok", members)
        note = None
        if call.fields:
            response, note = await self._shaper.select(call, response, call.fields)
        has_schema = bound.output is not None and not call.fields
        if len(response.body) <= MAX_TEXT_BYTES:
            members = result_rendering.content(response)
        else:
            is_kept = not bound.guardrails  # a stored body could be read without the guardrails
            is_whole = is_kept and call.summary_threshold > 0
            # guard: guardrail-leftover
            members = await self._shaper.content(
                call, response, is_kept=is_kept, is_whole=is_whole, has_schema=has_schema
            )
        if bound.output is not None and has_schema:
            members = await self._results.check_upstream_result(tenant, bound.output, members, response)
        if note is not None:
            members = append_text(members, note)
        call.status = response.status
        return _end(call, "ok" if response.status < _HTTP_ERROR else "upstream_error", members)

    async def _perform(
        self,
        call: Invocation,
        bound: BoundResource | BoundPrompt,
        handler: Handler[_Result],
        arguments: Mapping[str, object],
    ) -> _Result:
        """Run the steps that resources and prompts share, in the order of the pipeline."""
        if bound.policy.recorded is not None:
            self._record_arguments(call, bound.policy.recorded, arguments)
        settled = handler.settle(arguments)
        judged = decide(bound, settled)  # guard: policy-deny-all
        if bound.guardrails:  # guard: guardrail-arguments-all
            await self.guardrails.check_call(call, bound.guardrails, settled)
        prepared = await self.acceptance.prepare(bound, settled)
        call.digest = prepared.digest
        needs_person = judged.decision is not _ALLOW  # guard: policy-confirm-all
        if needs_person and await self._needs_approval(call, judged, handler, prepared):
            async with self._approved(call, bound, handler, prepared) as approved:
                return await handler.run(approved, call)
        if bound.primitive.level is not Safety.SAFE:
            await self._record_intent(call)
        return await handler.run(prepared, call)


async def _run(call: Invocation, handler: Handler[_Result], prepared: Prepared) -> _Result:
    """Run the handler and record its duration."""
    asked_ns = perf_counter_ns()
    try:
        return await handler.run(prepared, call)
    finally:
        call.upstream_ns = perf_counter_ns() - asked_ns


def _end(call: Invocation, outcome: str, members: bytes) -> bytes:
    """Set the outcome and the size of a tool's result on the call, and return the result."""
    call.outcome = outcome
    call.size = len(members)
    return members
