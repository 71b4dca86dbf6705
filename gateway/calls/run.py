"""What happens to a tool call: authorise, limit, decide, validate, prepare, record the intent, run, shape, record.

`Calls.run` is the one way to a handler. It answers with the inside of a protocol result as JSON bytes; what it raises
is no result but a refusal that the face translates.
"""

import time
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

import anyio
import structlog

from gateway.calls import shape
from gateway.definitions.validators import find_faults
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.keys import Scope
from gateway.domain.policy import Decision, Limits, Safety
from gateway.domain.principals import Principal
from gateway.domain.requests import UpstreamAnswer
from gateway.errors import (
    ArgumentsInvalid,
    Forbidden,
    GatewayError,
    LimitExceeded,
    NotFound,
    PolicyDenied,
    UpstreamError,
)
from gateway.handlers.bind import BoundTool
from gateway.handlers.port import Prepared

log = structlog.get_logger(__name__)

_HTTP_ERROR = 400


class Limiter(Protocol):
    """What counts calls against a tenant's limits."""

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """A place among the tenant's calls for as long as the block runs, or LimitExceeded."""
        ...


class Trail(Protocol):
    """Where calls are recorded; a write returns when it is durable."""

    async def write(self, record: CallRecord) -> None:
        """Commit one record, or raise AuditUnavailable."""
        ...


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a call ended, for the trail, and the bytes that tell the client."""

    result: bytes
    word: str
    status: int | None = None
    digest: bytes = b""


class Calls:
    """The stations of this replica."""

    def __init__(self, limiter: Limiter, trail: Trail) -> None:
        self._limiter = limiter
        self._trail = trail

    async def run(
        self, principal: Principal, bound: BoundTool, arguments: Mapping[str, object], *, correlation_id: str
    ) -> bytes:
        """Run one call to its end and return the members of its result object as JSON.

        Raises:
            NotFound, Forbidden: the tool is not this principal's to call.
            LimitExceeded: too many calls; nothing was done.
            AuditUnavailable: the call could not be recorded, so it has no answer.
        """
        _authorise(principal, bound)
        call = _Call(principal, bound, arguments, correlation_id)
        try:
            async with self._limiter.admit(principal.tenant, principal.key, bound.limits):
                outcome = await self._perform(call)
        except LimitExceeded:
            await self._trail.write(call.record(_Outcome(b"", "limited")))
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._trail.write(call.record(_Outcome(b"", "cancelled", None, call.digest)))
            raise
        await self._trail.write(call.record(outcome))
        return outcome.result

    async def _perform(self, call: "_Call") -> _Outcome:
        bound = call.bound
        try:
            _decide(bound)
            arguments = bound.handler.settle(call.arguments)
            if not bound.validator.is_valid(arguments):
                faults = find_faults(bound.validator, arguments)
                raise ArgumentsInvalid("the arguments do not match the tool's input schema", faults=faults)
            prepared = bound.handler.prepare(arguments)
            call.digest = prepared.digest
            if bound.tool.safety is not Safety.SAFE:
                await self._trail.write(call.intent(prepared))
            answer = await bound.handler.run(prepared)
        except (ArgumentsInvalid, PolicyDenied, UpstreamError) as error:
            return _Outcome(shape.failure(error, call.correlation_id), error.code, None, call.digest)
        except GatewayError:
            raise
        except Exception:
            log.exception("call_failed", tool=bound.tool.name, correlation_id=call.correlation_id)
            return _Outcome(shape.crash(call.correlation_id), "crashed", None, call.digest)
        return _outcome_of(answer, prepared)


class _Call:
    """One call on its way through the stations."""

    __slots__ = ("arguments", "bound", "correlation_id", "digest", "principal", "started_ns")

    def __init__(
        self, principal: Principal, bound: BoundTool, arguments: Mapping[str, object], correlation_id: str
    ) -> None:
        self.principal = principal
        self.bound = bound
        self.arguments = arguments
        self.correlation_id = correlation_id
        self.digest = b""
        self.started_ns = time.perf_counter_ns()

    def intent(self, prepared: Prepared) -> CallRecord:
        """That the call is about to be made."""
        return self._record(AuditKind.CALL_INTENT, _Outcome(b"", "intended", None, prepared.digest))

    def record(self, outcome: _Outcome) -> CallRecord:
        """How the call ended."""
        return self._record(AuditKind.CALL, outcome)

    def _record(self, kind: AuditKind, outcome: _Outcome) -> CallRecord:
        return CallRecord(
            tenant=self.principal.tenant,
            kind=kind,
            principal=self.principal.name,
            subject=self.principal.subject,
            tool=self.bound.tool.name,
            outcome=outcome.word,
            correlation_id=self.correlation_id,
            digest=outcome.digest,
            status=outcome.status,
            duration_us=(time.perf_counter_ns() - self.started_ns) // 1000,
            result_bytes=len(outcome.result),
        )


def _authorise(principal: Principal, bound: BoundTool) -> None:
    if principal.tenant != bound.tenant:
        raise NotFound("no such tool")
    if Scope.MCP not in principal.scopes:
        raise Forbidden("the key lacks the scope mcp")


def _decide(bound: BoundTool) -> None:
    if bound.decision is Decision.ALLOW:
        return
    raise PolicyDenied(f"the tenant's policy answers {bound.tool.safety} calls with {bound.decision}")


def _outcome_of(answer: UpstreamAnswer, prepared: Prepared) -> _Outcome:
    word = "ok" if answer.status < _HTTP_ERROR else "upstream_error"
    return _Outcome(shape.content(answer), word, answer.status, prepared.digest)
