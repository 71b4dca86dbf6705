"""The record of a call's end in the audit trail and the metrics, written before the call returns its result."""

from collections.abc import Coroutine
from time import perf_counter_ns
from types import TracebackType
from typing import Any, Protocol

import anyio
import structlog

from gateway.calls import result_rendering
from gateway.calls.invocation import Invocation
from gateway.domain.audit import AuditKind, CallRecord, CountedRefusal
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import RecursionRefused
from gateway.errors import (
    AuditUnavailable,
    GatewayError,
    HandlerFailed,
    LimitExceeded,
    OutputInvalid,
    TemplateFailed,
)
from gateway.handlers.interfaces import InputRequired
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_NS = 1e9
_LIMITED = "limited"
_CALL = AuditKind.CALL  # an enum lookup costs more than a function call


class AuditSink(Protocol):
    """The sink for records of calls; a write returns when the record is stored durably."""

    def write(self, record: CallRecord, /) -> Coroutine[Any, Any, None]:
        """Store one record, or raise AuditUnavailable."""
        ...

    def count(self, tenant: TenantId, refusal: CountedRefusal) -> None:
        """Count a refused call, which has no audit entry."""
        ...


class RecordedCall:
    """Context manager of one call: on exit, records the outcome before the call's result or error is passed on.

    A call whose outcome cannot be recorded ends with AuditUnavailable. An unexpected exception becomes HandlerFailed.
    """

    __slots__ = ("_audit", "_call", "_metrics")

    def __init__(self, call: Invocation, audit: AuditSink, metrics: Metrics) -> None:
        self._call = call
        self._audit = audit
        self._metrics = metrics

    async def __aenter__(self) -> None:
        """Do nothing: every call is recorded on exit, also a rejected one."""

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
            await self._record(self._call.outcome)
        elif isinstance(error, AuditUnavailable):
            return
        elif isinstance(error, LimitExceeded) and not self._call.digest:  # guard: limited-calls-counted
            self._count(_LIMITED)
        elif isinstance(error, GatewayError | InputRequired):
            log_failure(self._call, error)
            await self._record(_outcome_of(error))
        elif isinstance(error, anyio.get_cancelled_exc_class()):
            with anyio.CancelScope(shield=True):
                await self._record("cancelled")
        elif isinstance(error, Exception):
            action, target = self._call.action
            correlation_id = self._call.correlation_id
            log.error("call_failed", action=action, target=target, correlation_id=correlation_id, exc_info=error)
            await self._record("crashed")
            raise HandlerFailed(result_rendering.CRASHED) from None

    def _count(self, outcome: str) -> None:
        """Count a call that a limit refused before it was prepared, because a flood of them must not fill the
        database.
        """
        principal = self._call.principal
        self._audit.count(principal.tenant, CountedRefusal(principal.name, self._call.action[0], outcome))
        self._measure(outcome)

    async def _record(self, outcome: str) -> None:
        await self._audit.write(self._call.record(_CALL, outcome))  # guard: audit-before-answer
        self._measure(outcome)

    def _measure(self, outcome: str) -> None:
        call = self._call
        total_s = (perf_counter_ns() - call.started_ns) / _NS
        source = call.source or call.action[0]
        upstream_s = call.upstream_ns / _NS
        self._metrics.note_call(call.principal.slug, source, outcome, total_s=total_s, upstream_s=upstream_s)


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


def _outcome_of(error: GatewayError | InputRequired) -> str:
    """Return the outcome that the audit trail and the metrics record for a call that ended with this exception."""
    if isinstance(error, InputRequired):
        return "input_required"
    return _LIMITED if isinstance(error, LimitExceeded) else error.code
