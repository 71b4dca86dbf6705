"""Explanations of tool calls: the steps of the pipeline, in order, without effects.

An explanation sends nothing, counts against no limit, records nothing and asks no user. Stored credentials are read
only to redact the displayed request. Hooks of guardrails are named, but not called. The explanation ends at the step
that would end the call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from gateway.calls.field_selection import take_fields
from gateway.calls.guardrails.chain import GuardrailFinding, of_arguments, refuse_blocked_call
from gateway.calls.pipeline import CallPipeline
from gateway.calls.policy import authorise, decide, evaluate
from gateway.catalog.snapshots.field_argument import offers_fields
from gateway.domain.tenancy.guardrails import Guardrail
from gateway.domain.tenancy.policy import Decision, Judgement
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tools import FIELDS
from gateway.errors import GatewayError
from gateway.handlers.binding import BoundTool
from gateway.handlers.interfaces import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The expected course of one call, up to its request."""

    judgement: Judgement
    guardrails: tuple[Guardrail, ...]
    """The guardrails of the tool, in order."""
    findings: tuple[GuardrailFinding, ...] = ()
    """Findings of built-in guardrails in the arguments."""
    error: GatewayError | None = None
    """The error that would end the call before anything is sent."""
    prepared: Prepared | None = None
    preview: str = ""
    """The requests that are known in advance, without credentials."""
    selects_fields: bool = False
    """True if the tool has the argument `_fields` in the profile."""

    @property
    def course(self) -> Literal["runs", "asks", "refused"]:
        """`asks` means that a person must confirm or approve the call first."""
        if self.error is not None:
            return "refused"
        return "runs" if self.judgement.decision is Decision.ALLOW else "asks"


async def explain(
    calls: CallPipeline,
    principal: Principal,
    bound: BoundTool,
    arguments: Mapping[str, object],
    *,
    selects_fields: bool = False,
) -> Explanation:
    """Explain a call of this principal with these arguments, in a profile that may offer `_fields`."""
    has_fields = selects_fields and offers_fields(bound.tool)
    explanation = Explanation(judgement=evaluate(bound, None), guardrails=bound.guardrails, selects_fields=has_fields)
    try:
        authorise(principal, bound)
        decide(bound)
        if has_fields and FIELDS in arguments:
            arguments, _ = take_fields(arguments)
        settled = await calls.acceptance.accept(bound, bound.handler.settle(arguments))
        explanation = replace(explanation, judgement=evaluate(bound, settled))
        decide(bound, settled)
        found = await calls.guardrails.try_chain(principal.tenant, bound.guardrails, of_arguments(settled))
        explanation = replace(explanation, findings=found)
        refuse_blocked_call(found)
        prepared = await calls.acceptance.prepare(bound, settled)
        explanation = replace(explanation, prepared=prepared)
        return replace(explanation, preview=await bound.handler.preview(prepared))
    except GatewayError as error:
        return replace(explanation, error=error)
