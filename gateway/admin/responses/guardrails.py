"""Response models of guardrails."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.admin.responses.models import Page, ResponseModel
from gateway.admin.responses.selections import RuleShown
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailAction, GuardrailCheck, GuardrailPhase
from gateway.domain.tools import PrimitiveOrigin


class HookShown(ResponseModel):
    """The HTTP hook of a guardrail, without its secret."""

    url: Annotated[str, Field(description="Where the signed request goes.")]
    credential: Annotated[str, Field(description="The stored credential that signs it.")]
    timeout_ms: Annotated[int, Field(description="How long a call waits for the answer.")]
    fail: Annotated[str, Field(description="Without a valid answer: `open` lets it pass, `closed` is a finding.")]


class GuardrailShown(ResponseModel):
    """A guardrail."""

    id: Id
    name: Name
    check: Annotated[GuardrailCheck, Field(description="What is looked for, or `http` for a hook.")]
    phases: Annotated[Sequence[GuardrailPhase], Field(description="When it checks.")]
    action: Annotated[GuardrailAction, Field(description="What a finding does.")]
    position: Annotated[int, Field(description="Lower ones run first; equal ones by name.")]
    scope: Annotated[RuleShown, Field(description="Which primitives; empty: all of them.")]
    origins: Annotated[Sequence[PrimitiveOrigin], Field(description="From where they come; empty: anywhere.")]
    patterns: Annotated[Sequence[str], Field(description="Only these patterns of the check; empty: the usual ones.")]
    max_bytes: Annotated[int | None, Field(description="The most bytes of JSON, with the check `size`.")]
    hook: Annotated[HookShown | None, Field(description="The hook, with the check `http`.")]
    enabled: Annotated[bool, Field(description="Whether it checks at all.")]
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(cls, guardrail: Guardrail) -> Self:
        """Build the response from a guardrail."""
        rule, hook = guardrail.rule, guardrail.rule.hook
        shown = None
        if hook is not None:
            fail = "open" if hook.is_fail_open else "closed"
            shown = HookShown(url=hook.url, credential=hook.credential, timeout_ms=hook.timeout_ms, fail=fail)
        return cls(
            id=guardrail.id,
            name=guardrail.name,
            check=rule.check,
            phases=rule.phases,
            action=rule.action,
            position=rule.position,
            scope=RuleShown.of(rule.scope),
            origins=rule.origins,
            patterns=rule.patterns,
            max_bytes=rule.max_bytes,
            hook=shown,
            enabled=rule.enabled,
            created_at=guardrail.created_at,
            updated_at=guardrail.updated_at,
        )


class GuardrailPage(Page[GuardrailShown]):
    """One page of a tenant's guardrails."""
