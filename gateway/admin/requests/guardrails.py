"""Request models of guardrails."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.openapi.formats import NAME
from gateway.admin.requests.models import GIVEN, Absent, BodyModel, Url
from gateway.admin.requests.primitives import CredentialName, RuleSent, Text
from gateway.domain.tenancy.guardrails import GuardrailAction, GuardrailCheck, GuardrailPhase
from gateway.domain.tools import PrimitiveOrigin

_MOST_PATTERNS = 50

Phases = Annotated[
    list[Annotated[GuardrailPhase, Field(strict=False)]],
    Field(min_length=1, max_length=2, description="When it checks: before the call, before the client has the result."),
]
ActionSent = Annotated[
    GuardrailAction, Field(strict=False, description="What a finding does; `mark` is for results alone.")
]
Position = Annotated[int, Field(ge=0, le=1000, description="Lower ones run first; equal ones by name.")]


def _everything() -> RuleSent:
    return RuleSent.model_validate({})


class HookSent(BodyModel):
    """The HTTP hook of a guardrail."""

    url: Annotated[Url, Field(description="Where the signed request goes, with POST.")]
    credential: Annotated[
        CredentialName, Field(description="The stored credential whose value, `whsec_` and base64, signs requests.")
    ]
    timeout_ms: Annotated[int, Field(ge=50, le=5000, description="How long a call waits for the answer.")] = 1000
    fail: Annotated[
        Literal["open", "closed"],
        Field(description="Without a valid answer: `open` allows, `closed` is a finding."),
    ] = "closed"


class GuardrailReplace(BodyModel):
    """A complete guardrail; it replaces every part of the previous one."""

    check: Annotated[GuardrailCheck, Field(strict=False, description="What is looked for, or `http` for a hook.")]
    phases: Phases
    action: ActionSent
    position: Position = 100
    scope: Annotated[RuleSent, Field(default_factory=_everything, description="Which primitives; empty: all of them.")]
    origins: Annotated[
        list[Annotated[PrimitiveOrigin, Field(strict=False)]],
        Field(default_factory=list[PrimitiveOrigin], max_length=5, description="Their origins; empty: all."),
    ]
    patterns: Annotated[
        list[Text],
        Field(default_factory=list[str], max_length=_MOST_PATTERNS, description="Only these patterns of the check."),
    ]
    max_bytes: Annotated[
        int | None, Field(ge=1, le=100_000_000, description="The most bytes of JSON, with the check `size`.")
    ] = None
    hook: Annotated[HookSent | None, Field(description="The hook, with the check `http`.")] = None
    enabled: Annotated[bool, Field(description="Whether it checks at all.")] = True


class GuardrailCreate(GuardrailReplace):
    """A new guardrail."""

    name: Annotated[str, Field(pattern=NAME, description="Unique in the tenant.")]


class GuardrailUpdate(BodyModel):
    """Changes of a guardrail; absent fields keep their value."""

    phases: Annotated[Phases | Absent, GIVEN] = None
    action: Annotated[ActionSent | Absent, GIVEN] = None
    position: Annotated[Position | Absent, GIVEN] = None
    enabled: Annotated[bool | Absent, GIVEN, Field(description="Whether it checks at all.")] = None
