"""The record of a call's end in the audit trail and the metrics, written before the call returns its result."""

import logging
from collections.abc import Coroutine
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Protocol

import anyio
import structlog

from gateway.calls import result_rendering
from gateway.calls.invocation import Invocation
from gateway.calls.policy import BoundPrimitive, authorise, rule_of_policy
from gateway.domain.audit import AuditKind, CallRecord, describe_rule
from gateway.domain.refusals import OutputInvalid, RecursionRefused
from gateway.errors import (
    AuditUnavailable,
    DecidingRule,
    GatewayError,
    HandlerFailed,
    LimitExceeded,
    PolicyDenied,
    TemplateFailed,
)
from gateway.handlers.interfaces import InputRequired
from gateway.identity.refusal_trail import RefusalTrail, rule_of
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_NS = 1e9
_LIMITED = "limited"
_CALL = AuditKind.CALL  # an enum lookup costs more than a function call


class AuditSink(RefusalTrail, Protocol):
    """The sink for records of calls; a write returns when the record is stored durably."""

    def write(self, record: CallRecord, /) -> Coroutine[Any, Any, None]:
        """Store one record, or raise AuditUnavailable."""
        ...


class RecordedCall:
    """Context manager of one call: on exit, records the outcome before the call's result or error is passed on.

    A call whose outcome cannot be recorded ends with AuditUnavailable. An unexpected exception becomes HandlerFailed.
    The refusal of a call that was not prepared is recorded in the background: it had no effect to account for.
    """

    __slots__ = ("_audit", "_bound", "_call", "_metrics")

    def __init__(self, call: Invocation, bound: BoundPrimitive, audit: AuditSink, metrics: Metrics) -> None:
        self._call = call
        self._bound = bound
        self._audit = audit
        self._metrics = metrics

    async def __aenter__(self) -> None:
        """Authorise the call; every call is recorded, also one that is refused here.

        Raises:
            NotFound, Forbidden: the principal may not use the primitive.
        """
        try:
            authorise(self._call.principal, self._bound)
        except GatewayError as error:
            await self._record(error.code, error)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record the outcome.

        Raises:
            AuditUnavailable: the outcome could not be recorded.
            HandlerFailed: the block ended with an unexpected exception.
        """
        self._call.release_body()  # guard: bodies-end-with-their-call
        if error is None:
            await self._record(self._call.outcome, self._call.failure)
        elif isinstance(error, AuditUnavailable):
            return
        elif isinstance(error, GatewayError | InputRequired):
            log_failure(self._call, error)
            await self._record(_outcome_of(error), error if isinstance(error, GatewayError) else None)
        elif isinstance(error, anyio.get_cancelled_exc_class()):
            with anyio.CancelScope(shield=True):
                await self._record("cancelled")
        elif isinstance(error, Exception):
            action, target = self._call.action
            correlation_id = self._call.correlation_id
            log.error("call_failed", action=action, target=target, correlation_id=correlation_id, exc_info=error)
            await self._record("crashed")
            raise HandlerFailed(result_rendering.CRASHED) from None

    async def _record(self, outcome: str, error: GatewayError | None = None) -> None:
        rule = None if error is None else _rule_of(self._call, error)
        if error is None or rule is None:
            await self._audit.write(self._call.record(_CALL, outcome))  # guard: audit-before-answer
        else:
            await self._record_refusal(outcome, error, rule)
        self._measure(outcome)

    async def _record_refusal(self, outcome: str, error: GatewayError, rule: DecidingRule) -> None:
        """Record a refusal with its rule; of a flood of calls that were not prepared, only the first are entries."""
        error.is_noted = True
        call, detail = self._call, self._call.describe_catalog()
        if not call.digest:  # guard: refused-calls-counted
            self._audit.note(call.record(_CALL, outcome, detail), rule, error.message)
            return
        await self._audit.write(call.record(_CALL, outcome, {**detail, **describe_rule(rule, error.message)}))

    def _measure(self, outcome: str) -> None:
        call = self._call
        total_s = (perf_counter_ns() - call.started_ns) / _NS
        source = call.source or call.action[0]
        upstream_s = call.upstream_ns / _NS
        self._metrics.note_call(call.principal.slug, source, outcome, total_s=total_s, upstream_s=upstream_s)
        if log.is_enabled_for(logging.DEBUG):
            _log_end(call, outcome, total_s, upstream_s)


def _log_end(call: Invocation, outcome: str, total_s: float, upstream_s: float) -> None:
    """Log one line for a call that has ended, with what its audit entry has, but for arguments and rules."""
    log.debug(
        "call_ended",
        action=call.action[0],
        target=call.action[1],
        tenant=call.principal.slug,
        principal=call.principal.name,
        profile="" if call.lookup is None else call.lookup.profile,
        source=call.source,
        outcome=outcome,
        status=call.status,
        duration_ms=round(total_s * 1000, 2),
        upstream_ms=round(upstream_s * 1000, 2),
        result_bytes=call.size,
        correlation_id=call.correlation_id,
    )


def log_failure(call: Invocation, error: Exception) -> None:
    """Log errors for which the handler is responsible, not errors of arguments, upstreams or clients."""
    if isinstance(error, HandlerFailed | OutputInvalid | RecursionRefused | TemplateFailed):
        log.warning(
            "handler_failed",
            action=call.action[0],
            target=call.action[1],
            tenant=call.principal.slug,
            reason=error.message,
            notes=getattr(error, "__notes__", []),
            correlation_id=call.correlation_id,
        )


def _rule_of(call: Invocation, error: GatewayError) -> DecidingRule | None:
    """The rule that refused the call; the policy's, if it demanded a person who did not permit the call."""
    if error.rule is None and isinstance(error, PolicyDenied) and call.judged is not None:
        return rule_of_policy(call.judged)
    return rule_of(error)


def _outcome_of(error: GatewayError | InputRequired) -> str:
    """Return the outcome that the audit trail and the metrics record for a call that ended with this exception."""
    if isinstance(error, InputRequired):
        return "input_required"
    return _LIMITED if isinstance(error, LimitExceeded) else error.code
