"""Response models of guardrails."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from gateway.admin.fields import CreatedAt, Id, Name, UpdatedAt
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.tenancy.guardrails import Guardrail, GuardrailAction, GuardrailPhase
from gateway.domain.tools import PrimitiveOrigin
from gateway.web.kinds.rules import RuleShown
from gateway.web.models import Page, ResponseModel


class HookShown(ResponseModel):
    """The HTTP hook of a guardrail, without its secret."""

    url: Annotated[str, Field(description="The URL that receives the signed POST request.")]
    credential: Annotated[str, Field(description="The stored credential that signs requests.")]
    timeout_ms: Annotated[int, Field(description="Milliseconds that a call waits for the response.")]
    fail: Annotated[
        str, Field(description="The outcome without a valid response: `open` allows the call, `closed` is a finding.")
    ]


class GuardrailShown(ResponseModel):
    """A guardrail."""

    id: Id
    name: Name
    check: Annotated[GuardrailCheck, Field(description="The built-in check, or `http` for a hook.")]
    phases: Annotated[Sequence[GuardrailPhase], Field(description="The phases of the check: arguments, result.")]
    action: Annotated[GuardrailAction, Field(description="The action on a finding.")]
    position: Annotated[
        int,
        Field(
            description="The position in the order of guardrails, lowest first; equal positions are ordered by name."
        ),
    ]
    scope: Annotated[RuleShown, Field(description="The primitives to check; an empty list means all.")]
    origins: Annotated[
        Sequence[PrimitiveOrigin], Field(description="The origins of these primitives; an empty list means all.")
    ]
    patterns: Annotated[
        Sequence[str], Field(description="The patterns of the check in use; an empty list means the default patterns.")
    ]
    max_bytes: Annotated[int | None, Field(description="The maximum size in bytes of JSON, for the check `size`.")]
    hook: Annotated[HookShown | None, Field(description="The hook, for the check `http`.")]
    enabled: Annotated[bool, Field(description="False: the guardrail is disabled.")]
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
