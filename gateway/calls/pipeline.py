"""The pipeline of a call: authorise, limit, decide, validate, prepare, confirm, record the intent, run, render, record.

All calls of handlers go through `CallPipeline`: tools, resources, prompts, completions, and calls inside calls. Most
failures of a tool are results with `isError`. Refusals and all other failures are exceptions, which `protocol` and
`admin` translate.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from time import perf_counter_ns
from typing import Any, Protocol, TypeVar

import anyio
import structlog
from msgspec.structs import replace

from gateway.calls import result_rendering
from gateway.calls.costly_validation import CostlyValidation
from gateway.calls.invocation import Invocation, Outcome, PrimitiveLookup
from gateway.calls.output_checks import ResultChecks, check_completions, check_contents, check_messages, encode
from gateway.calls.policy import CONFIRMED, REFUSALS, Confirmation, ask_user, authorise, decide
from gateway.calls.prompts import check_arguments, embed_resources
from gateway.definitions.json_schema.validator import Costly
from gateway.domain.audit import AuditKind, CallRecord
from gateway.domain.http.requests import UpstreamAnswer
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.results import Completions, Contents, Messages, Result
from gateway.domain.tenancy.policy import Decision, Limits, Safety
from gateway.domain.tenancy.principals import Principal
from gateway.errors import (
    ArgumentsInvalid,
    AuditUnavailable,
    BadInput,
    CallError,
    CapabilityMissing,
    Fault,
    GatewayError,
    HandlerFailed,
    LimitExceeded,
    NotFound,
    OutputInvalid,
    PolicyDenied,
    RecursionRefused,
    TemplateFailed,
    UpstreamError,
)
from gateway.handlers.binding import BoundPrompt, BoundResource, BoundTemplate, BoundTool
from gateway.handlers.interfaces import Handler, InputRequired, Peer, Prepared
from gateway.handlers.null_peer import NULL_PEER
from gateway.telemetry.metrics import Metrics

__all__ = ("AuditSink", "CallPipeline", "Limiter", "PrimitiveLookup")

log = structlog.get_logger(__name__)

_HTTP_ERROR = 400
_NS = 1e9
_ALLOW, _SAFE, _CALL = Decision.ALLOW, Safety.SAFE, AuditKind.CALL  # an enum lookup costs more than a function call
_SHOWN = (BadInput, PolicyDenied, UpstreamError, CallError, TemplateFailed, NotFound)
"""Errors that become results of a tool, except `CapabilityMissing`."""

_Answer = TypeVar("_Answer")


class Limiter(Protocol):
    """The limiter of a tenant's calls."""

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """Hold one of the tenant's call slots while the block runs, or raise LimitExceeded."""
        ...

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """Count a call inside another one, which shares the outer call's slot, or raise LimitExceeded."""
        ...


class AuditSink(Protocol):
    """The sink for records of calls; a write returns when the record is stored durably."""

    async def write(self, record: CallRecord) -> None:
        """Store one record, or raise AuditUnavailable."""
        ...


class CallPipeline:
    """The call pipeline of this replica."""

    def __init__(
        self,
        limiter: Limiter,
        audit: AuditSink,
        shaper: result_rendering.ResultRenderer | None = None,
        metrics: Metrics | None = None,
        checks: CostlyValidation | None = None,
    ) -> None:
        self._checks = checks or CostlyValidation()
        self.check_places = self._checks.places
        self._results = ResultChecks(self._checks)
        self._limiter = limiter
        self._audit = audit
        self._shaper = shaper or result_rendering.ResultRenderer()
        self._metrics = metrics or Metrics()

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
            Unavailable, SecretUnreadable: the call needs a part of the gateway, or a secret, that is not usable now.
            CapabilityMissing: the call has a question for the client that needs an undeclared capability.
            InputRequired: the client has to answer a question, and call again.
        """
        call = Invocation(self, principal, peer, lookup, correlation_id=correlation_id, asked=("call", bound.tool.name))
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
            InputRequired: the client has to answer a question, and read again.
            GatewayError: as for tools; also the errors that would be results of a tool (`_SHOWN`).
        """
        call = Invocation(self, principal, peer, lookup, correlation_id=correlation_id, asked=("read", bound.uri))
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
            self, principal, peer, lookup, correlation_id=correlation_id, asked=("get", bound.primitive.name)
        )
        authorise(principal, bound)
        call.levels = bound.primitive.levels
        return await self._recorded(call, bound.limits, lambda: self._get(call, bound, arguments))

    async def check(self, bound: BoundTool, arguments: Mapping[str, object]) -> tuple[Fault, ...]:
        """Return the violations of settled arguments; the admin API shows them without a call.

        Raises:
            LimitExceeded, Unavailable: the arguments cannot be checked now.
        """
        return await self._checks.check(bound.tenant, bound.validator, arguments)

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
            self, principal, NULL_PEER, None, correlation_id=correlation_id, asked=("complete", bound.primitive.name)
        )
        authorise(principal, bound)
        return await self._recorded(call, bound.limits, lambda: self._complete(call, bound, argument, chosen))

    def call_tool(
        self, call: Invocation, bound: BoundTool, arguments: Mapping[str, object]
    ) -> Coroutine[Any, Any, bytes]:
        """Run a tool call through the whole pipeline; see `run`."""
        authorise(call.principal, bound)
        call.source = bound.tool.source_name or bound.tool.origin
        call.levels = bound.tool.levels
        return self._recorded(call, bound.limits, lambda: self._run(call, bound, arguments))

    def read_resource(self, call: Invocation, bound: BoundResource) -> Coroutine[Any, Any, Contents]:
        """Run the reading of a resource through the whole pipeline; see `read`."""
        authorise(call.principal, bound)
        call.levels = bound.primitive.levels
        return self._recorded(call, bound.limits, lambda: self._read(call, bound))

    async def _recorded(
        self, call: Invocation, limits: Limits, perform: Callable[[], Awaitable[Outcome[_Answer]]]
    ) -> _Answer:
        """Admit and run a call, and record its outcome before the result is returned."""
        try:
            admit = self._limiter.admit_inner if call.is_inner else self._limiter.admit
            async with admit(call.principal.tenant, call.principal.key, limits):
                outcome = await perform()
        except AuditUnavailable:
            raise
        except (GatewayError, InputRequired) as error:
            _note(call, error)
            await self._audit.write(call.record(_CALL, Outcome(None, _word(error))))
            self._count(call, _word(error))
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._audit.write(call.record(_CALL, Outcome(None, "cancelled")))
            self._count(call, "cancelled")
            raise
        except Exception:
            log.exception("call_failed", action=call.asked[0], target=call.asked[1], correlation_id=call.correlation_id)
            await self._audit.write(call.record(_CALL, Outcome(None, "crashed")))
            self._count(call, "crashed")
            raise HandlerFailed(result_rendering.CRASHED) from None
        await self._audit.write(call.record(_CALL, outcome))
        self._count(call, outcome.word)
        return outcome.answer

    def _count(self, call: Invocation, word: str) -> None:
        total_s = (perf_counter_ns() - call.started_ns) / _NS
        source = call.source or call.asked[0]
        self._metrics.note_call(call.principal.slug, source, word, total_s=total_s, upstream_s=call.upstream_ns / _NS)

    async def _run(self, call: Invocation, bound: BoundTool, given: Mapping[str, object]) -> Outcome[bytes]:
        try:
            is_allowed = bound.decision is _ALLOW
            if not is_allowed:
                decide(bound)
            prepared = await self._prepare(call, bound, given)
            call.digest = prepared.digest
            if not is_allowed:
                await self._confirm(call, bound.handler, prepared)
            if bound.tool.level is not _SAFE:
                await self._audit.write(call.record(AuditKind.CALL_INTENT, Outcome(None, "intended")))
            asked_ns = perf_counter_ns()
            try:
                answer = await bound.handler.run(prepared, call)
            finally:
                call.upstream_ns = perf_counter_ns() - asked_ns
            if isinstance(answer, Result):
                return await self._encode(call, answer, bound)
            return await self._shape(call, answer, bound)
        except CapabilityMissing:
            raise
        except _SHOWN as error:
            _note(call, error)
            return _failed(result_rendering.failure(error, call.correlation_id), error.code)
        except (GatewayError, InputRequired):
            raise
        except Exception:
            log.exception("call_failed", tool=bound.tool.name, correlation_id=call.correlation_id)
            return _failed(result_rendering.internal_error(call.correlation_id), "crashed")

    async def _prepare(self, call: Invocation, bound: BoundTool, given: Mapping[str, object]) -> Prepared:
        arguments = bound.handler.settle(given)
        found = bound.validator.check(arguments)
        if isinstance(found, Costly):
            found = await self._checks.finish(call.principal.tenant, found)
        if found:
            raise ArgumentsInvalid("the arguments do not match the tool's input schema", faults=found)
        return bound.handler.prepare(arguments)

    async def _confirm(self, call: Invocation, handler: Handler[Any], prepared: Prepared) -> None:
        """Ask the user for confirmation, and record the outcome once before the call continues.

        Raises:
            PolicyDenied: the user declined, did not answer or cannot be asked, or the call has changed since.
            CredentialMissing: the call cannot be made, so the user is not asked.
            InputRequired: the answer comes with a later request.
        """
        digest = prepared.digest.hex()
        decided = await ask_user(call, digest, await handler.preview(prepared))
        if call.peer.recall(CONFIRMED) != digest:
            await self._audit.write(replace(call.record(_CALL, Outcome(None, decided.value)), action="confirm"))
            call.peer.remember(CONFIRMED, digest)
        if decided is not Confirmation.GRANTED:
            raise PolicyDenied(REFUSALS[decided])

    async def _encode(self, call: Invocation, result: Result, bound: BoundTool) -> Outcome[bytes]:
        members, structured = encode(result)
        if bound.output is not None and not result.is_error:
            await self._results.check_structured(call.principal.tenant, bound.output, structured)
        return Outcome(members, "error" if result.is_error else "ok", None, len(members))

    async def _shape(self, call: Invocation, answer: UpstreamAnswer, bound: BoundTool) -> Outcome[bytes]:
        if len(answer.body) <= result_rendering.LARGEST_TEXT:
            members = result_rendering.content(answer)
        else:
            members = await self._shaper.content(call.principal, answer)
        if bound.output is not None:
            members = await self._results.check_upstream_result(call.principal.tenant, bound.output, members)
        word = "ok" if answer.status < _HTTP_ERROR else "upstream_error"
        return Outcome(members, word, answer.status, len(members))

    async def _read(self, call: Invocation, bound: BoundResource) -> Outcome[Contents]:
        contents = await self._perform(call, bound, bound.handler, bound.variables)
        checked, size = check_contents(contents, bound)
        return Outcome(checked, "ok", size=size)

    async def _get(self, call: Invocation, bound: BoundPrompt, arguments: Mapping[str, str]) -> Outcome[Messages]:
        check_arguments(bound, arguments)
        messages = await self._perform(call, bound, bound.handler, arguments)
        checked, size = check_messages(await embed_resources(messages, call), bound)
        return Outcome(checked, "ok", size=size)

    async def _complete(
        self,
        call: Invocation,
        bound: BoundPrompt | BoundTemplate,
        argument: tuple[str, str],
        chosen: Mapping[str, str],
    ) -> Outcome[Completions]:
        name, typed = argument
        if name not in bound.arguments:
            raise ArgumentsInvalid(f"there is no argument {name[:128]!r} to complete")
        decide(bound)
        if bound.completer is None:
            return Outcome(Completions(values=(), total=0), "ok")
        found = await bound.completer.complete(name, typed, chosen, call)
        return Outcome(check_completions(found), "ok")

    async def _perform(
        self,
        call: Invocation,
        bound: BoundResource | BoundPrompt,
        handler: Handler[_Answer],
        arguments: Mapping[str, object],
    ) -> _Answer:
        """Decide, prepare, confirm, record the intent, run: the steps that resources and prompts share."""
        decide(bound)
        prepared = handler.prepare(handler.settle(arguments))
        call.digest = prepared.digest
        if bound.decision is Decision.CONFIRM:
            await self._confirm(call, handler, prepared)
        if bound.primitive.level is not Safety.SAFE:
            await self._audit.write(call.record(AuditKind.CALL_INTENT, Outcome(None, "intended")))
        return await handler.run(prepared, call)


def _failed(result: bytes, word: str) -> Outcome[bytes]:
    return Outcome(result, word, None, len(result))


def _note(call: Invocation, error: Exception) -> None:
    """Log errors for which the handler is responsible, not errors of arguments, upstreams or clients."""
    if isinstance(error, HandlerFailed | OutputInvalid | RecursionRefused | TemplateFailed):
        log.warning(
            "handler_failed",
            action=call.asked[0],
            target=call.asked[1],
            tenant=call.principal.slug,
            reason=error.message,
            notes=getattr(error, "__notes__", []),
            correlation_id=call.correlation_id,
        )


def _word(error: GatewayError | InputRequired) -> str:
    """Return the outcome that the audit trail and the metrics record for a call that ended with this exception."""
    if isinstance(error, InputRequired):
        return "input_required"
    return "limited" if isinstance(error, LimitExceeded) else error.code
