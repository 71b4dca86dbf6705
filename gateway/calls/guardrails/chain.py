"""The chain of guardrails of a call.

It checks the arguments before the call is prepared, and the result before it is returned.

The binder selects the guardrails of a primitive, so a call without guardrails costs one comparison. Guardrails run in
their order until one blocks. Each finding is logged, counted and recorded in the audit trail; no record contains the
matched text. A check that cannot be made counts as a finding, except for a hook that is declared to fail open.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import structlog
from msgspec.structs import replace

from gateway.calls import result_rendering
from gateway.calls.guardrails.http_hook import HookEvaded, HookFailed, HookResponse
from gateway.calls.guardrails.marks import mark_contents, mark_members, mark_messages
from gateway.calls.guardrails.texts import BINARY, TooMuchText, read_members, text_of
from gateway.calls.invocation import Invocation
from gateway.calls.recorded_call import AuditSink
from gateway.domain.audit import AuditKind, RuleKind
from gateway.domain.fairness.large_work import run_large
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import CallBlocked, ResultBlocked, ResultBusy
from gateway.domain.results import Contents, Messages
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailAction, GuardrailPhase, HookFailure, HookSettings
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.text_search.search import search
from gateway.errors import DecidingRule
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_UNCHECKED = "it is too large or too deep to be checked"
_BUSY = "too many checks of large texts are queued"
_SEARCH_COST = 4
"""A search of a text takes about four times as long as reading it."""
_BLOCKED_CODES = frozenset({CallBlocked.code, ResultBlocked.code})
_OUTCOMES: Mapping[GuardrailAction, str] = {
    GuardrailAction.BLOCK: "blocked",
    GuardrailAction.MARK: "marked",
    GuardrailAction.LOG: "logged",
}


class Hooks(Protocol):
    """The client of HTTP hooks."""

    async def ask(self, tenant: TenantId, guardrail: Guardrail, hook: HookSettings, event: object) -> HookResponse:
        """Return the hook's response, or raise HookFailed."""
        ...


class _NoHooks:
    """Replaces the hooks in a gateway without outbound connections: every hook fails."""

    async def ask(self, tenant: TenantId, guardrail: Guardrail, hook: HookSettings, event: object) -> HookResponse:
        raise HookFailed("this gateway sends no requests to hooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The value checked in one phase, encoded and decoded."""

    phase: GuardrailPhase
    content: Mapping[str, object]
    """The member `arguments` or `result` of the hook's event."""
    size: int
    texts: object = None
    """The value whose strings are searched; None if it could not be read."""
    binary: Collection[str] = BINARY
    """The members of `texts` that may have binary content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailFinding:
    """A finding of one guardrail."""

    guardrail: Guardrail
    reasons: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The name of the guardrail and its reasons, for messages."""
        return f"guardrail {self.guardrail.name} ({self.guardrail.check}): {', '.join(self.reasons)}"


class Guardrails:
    """The guardrails of all tenants on this replica."""

    def __init__(self, audit: AuditSink, metrics: Metrics, hooks: Hooks | None = None) -> None:
        self._audit = audit
        self._metrics = metrics
        self._hooks = hooks or _NoHooks()

    async def check_call(self, call: Invocation, chain: Sequence[Guardrail], arguments: Mapping[str, object]) -> None:
        """Check the settled arguments of a call, before anything is sent.

        Raises:
            CallBlocked: a guardrail blocks the arguments.
        """
        refuse_blocked_call(await self._findings(call, chain, of_arguments(arguments)))

    async def check_members(self, call: Invocation, chain: Sequence[Guardrail], members: bytes) -> bytes:
        """Check the members of a tool's result; return them, marked or replaced by an error."""
        if call.outcome in _BLOCKED_CODES:
            return members
        found = await self._findings(call, chain, await _read_result(call.principal.tenant, members))
        try:
            _refuse_blocked(found)
        except ResultBlocked as error:
            members = result_rendering.failure(error, call.correlation_id)
            call.outcome = error.code
        marks = _marks(found)
        members = mark_members(members, marks) if marks and call.outcome not in _BLOCKED_CODES else members
        call.size = len(members)
        return members

    async def check_contents(self, call: Invocation, chain: Sequence[Guardrail], contents: Contents) -> Contents:
        """Check the contents of a resource.

        Raises:
            ResultBlocked: a guardrail blocks the contents.
        """
        checked = await run_large(call.principal.tenant, call.size, of_result, {"contents": contents.contents})
        found = await self._findings(call, chain, checked)
        _refuse_blocked(found)
        marks = _marks(found)
        return mark_contents(contents, marks) if marks else contents

    async def check_messages(self, call: Invocation, chain: Sequence[Guardrail], messages: Messages) -> Messages:
        """Check the messages of a prompt.

        Raises:
            ResultBlocked: a guardrail blocks the messages.
        """
        content = {"description": messages.description or "", "messages": messages.messages}
        checked = await run_large(call.principal.tenant, call.size, of_result, content)
        found = await self._findings(call, chain, checked)
        _refuse_blocked(found)
        marks = _marks(found)
        return mark_messages(messages, marks) if marks else messages

    async def try_chain(
        self, tenant: TenantId, chain: Sequence[Guardrail], checked: Checked
    ) -> tuple[GuardrailFinding, ...]:
        """The findings of built-in checks, without effects; hooks are not called."""
        found = [
            GuardrailFinding(guardrail=guardrail, reasons=reasons)
            for guardrail in chain
            if checked.phase in guardrail.phases and guardrail.hook is None
            if (reasons := await self._built_in(tenant, guardrail, checked))
        ]
        return tuple(found)

    async def _findings(
        self, call: Invocation, chain: Sequence[Guardrail], checked: Checked
    ) -> Sequence[GuardrailFinding]:
        """Run the guardrails of this phase in order, up to the first that blocks, and record the findings."""
        found: list[GuardrailFinding] = []
        for guardrail in chain:
            if checked.phase not in guardrail.phases:
                continue
            reasons = await self._reasons(call, guardrail, checked)
            if not reasons:
                continue
            finding = GuardrailFinding(guardrail=guardrail, reasons=reasons)
            await self._record(call, finding)
            found.append(finding)
            if guardrail.action is GuardrailAction.BLOCK:
                break
        return found

    async def _reasons(self, call: Invocation, guardrail: Guardrail, checked: Checked) -> tuple[str, ...]:
        tenant, hook = call.principal.tenant, guardrail.hook
        if hook is None:
            return await self._built_in(tenant, guardrail, checked)
        try:
            response = await self._hooks.ask(tenant, guardrail, hook, _event(call, guardrail, checked))
        except HookFailed as failed:
            self._note_failure(call, guardrail, failed.reason)
            # guard: guardrail-fail-closed, guardrail-hook-evaded
            is_open = hook.fail is HookFailure.OPEN and not isinstance(failed, HookEvaded)
            return () if is_open else (f"the hook failed: {failed.reason}",)
        return () if response.action == "allow" else (response.reason or "the hook blocks it",)

    async def _built_in(self, tenant: TenantId, guardrail: Guardrail, checked: Checked) -> tuple[str, ...]:
        if guardrail.check is GuardrailCheck.SIZE:
            limit = guardrail.max_bytes or 0
            return (f"{checked.size} bytes, the limit is {limit}",) if checked.size > limit else ()
        if checked.texts is None:
            return (_UNCHECKED,)  # guard: guardrail-unchecked
        try:
            return await run_large(tenant, _SEARCH_COST * checked.size, _search, guardrail, checked)
        except TooMuchText:
            return (_UNCHECKED,)
        except ResultBusy:
            return (_BUSY,)

    async def _record(self, call: Invocation, finding: GuardrailFinding) -> None:
        """Record one finding, before it has an effect.

        Raises:
            AuditUnavailable: the finding could not be recorded.
        """
        guardrail, name = finding.guardrail, finding.guardrail.name
        outcome = _OUTCOMES[guardrail.action]
        log.warning(
            "guardrail_found",
            guardrail=name,
            check=guardrail.check.value,
            done=outcome,
            reasons=finding.reasons,
            tenant=call.principal.slug,
            target=call.action[1],
            correlation_id=call.correlation_id,
        )
        self._metrics.guardrails.add(call.principal.slug, guardrail.check.value, outcome)
        # guard: guardrail-recorded
        await self._audit.write(replace(call.record(AuditKind.CALL, f"{outcome}:{name}"), action="guardrail"))

    def _note_failure(self, call: Invocation, guardrail: Guardrail, reason: str) -> None:
        """Log and count a hook that returned no valid response."""
        log.warning(
            "guardrail_hook_failed",
            guardrail=guardrail.name,
            reason=reason,
            tenant=call.principal.slug,
            correlation_id=call.correlation_id,
        )
        self._metrics.guardrails.add(call.principal.slug, guardrail.check.value, "failed")


def refuse_blocked_call(found: Sequence[GuardrailFinding]) -> None:
    """Reject a call if a finding has the action `block`.

    Raises:
        CallBlocked: a finding blocks the call.
    """
    for finding in found:
        if finding.guardrail.action is GuardrailAction.BLOCK:  # guard: guardrail-block-call
            message = f"the arguments are not allowed by {finding.sentence}; nothing was sent"
            raise CallBlocked(message, rule=DecidingRule(RuleKind.GUARDRAIL, finding.guardrail.name))


def of_arguments(arguments: Mapping[str, object]) -> Checked:
    """The arguments of a call, in the form that the chain checks."""
    size = len(msgspec.json.encode(arguments))
    content = {"arguments": arguments}
    return Checked(phase=GuardrailPhase.CALL, content=content, size=size, texts=arguments, binary=())


def of_members(members: bytes) -> Checked:
    """The members of a tool's result, in the form that the chain checks."""
    try:
        return _of_members(members, read_members(members))
    except TooMuchText:
        return _of_members(members, None)


def _of_members(members: bytes, texts: Mapping[str, Any] | None) -> Checked:
    raw = msgspec.Raw(b"{" + members + b"}")
    return Checked(phase=GuardrailPhase.RESULT, content={"result": raw}, size=len(members), texts=texts)


async def _read_result(tenant: TenantId, members: bytes) -> Checked:
    """The members of a tool's result as `of_members` reads them; unread if too many large ones wait."""
    try:
        return await run_large(tenant, len(members), of_members, members)
    except ResultBusy:
        return _of_members(members, None)


def of_result(result: Mapping[str, object]) -> Checked:
    """The contents of a resource or the messages of a prompt, in the form that the chain checks."""
    encoded = msgspec.json.encode(result)
    return Checked(
        phase=GuardrailPhase.RESULT, content={"result": msgspec.Raw(encoded)}, size=len(encoded), texts=result
    )


def _search(guardrail: Guardrail, checked: Checked) -> tuple[str, ...]:
    return search(guardrail.check, guardrail.patterns, text_of(checked.texts, checked.binary))


def _event(call: Invocation, guardrail: Guardrail, checked: Checked) -> Mapping[str, object]:
    action, target = call.action
    return {
        "type": f"guardrail.{checked.phase}",
        "guardrail": guardrail.name,
        "tenant": call.principal.slug,
        "subject": call.principal.subject,
        "correlation_id": call.correlation_id,
        "action": action,
        "target": target,
        "source": call.source,
        **checked.content,
    }


def _refuse_blocked(found: Sequence[GuardrailFinding]) -> None:
    for finding in found:
        if finding.guardrail.action is GuardrailAction.BLOCK:  # guard: guardrail-block-result
            message = f"the call has run, but its result is withheld by {finding.sentence}"
            raise ResultBlocked(message, rule=DecidingRule(RuleKind.GUARDRAIL, finding.guardrail.name))


def _marks(found: Sequence[GuardrailFinding]) -> Sequence[tuple[Guardrail, tuple[str, ...]]]:
    return [
        (finding.guardrail, finding.reasons) for finding in found if finding.guardrail.action is GuardrailAction.MARK
    ]
