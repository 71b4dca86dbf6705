"""Request models of guardrails."""

from typing import Annotated, Literal

from pydantic import Field

from gateway.admin.requests.models import Url
from gateway.admin.requests.primitives import CredentialName, Text
from gateway.domain.members.formats import NAME
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.tenancy.guardrails import GuardrailAction, GuardrailPhase
from gateway.domain.tools import PrimitiveOrigin
from gateway.web.kinds.rules import RuleSent
from gateway.web.models import GIVEN, Absent, BodyModel

_MAX_PATTERNS = 50

Phases = Annotated[
    list[Annotated[GuardrailPhase, Field(strict=False)]],
    Field(
        min_length=1,
        max_length=2,
        description="The phases of the check: arguments before the call, the result before the client receives it.",
    ),
]
ActionSent = Annotated[
    GuardrailAction, Field(strict=False, description="The action on a finding; `mark` applies to results only.")
]
Position = Annotated[
    int,
    Field(
        ge=0,
        le=1000,
        description="The position in the order of guardrails, lowest first; equal positions are ordered by name.",
    ),
]


def _match_all() -> RuleSent:
    return RuleSent.model_validate({})


class HookSent(BodyModel):
    """The HTTP hook of a guardrail."""

    url: Annotated[Url, Field(description="The URL that receives the signed POST request.")]
    credential: Annotated[
        CredentialName,
        Field(description="The stored credential that signs requests; its value is `whsec_` and base64."),
    ]
    timeout_ms: Annotated[
        int, Field(ge=50, le=5000, description="Milliseconds that a call waits for the response.")
    ] = 1000
    fail: Annotated[
        Literal["open", "closed"],
        Field(description="The outcome without a valid response: `open` allows the call, `closed` is a finding."),
    ] = "closed"


class GuardrailReplace(BodyModel):
    """A complete guardrail; it replaces every part of the previous one."""

    check: Annotated[GuardrailCheck, Field(strict=False, description="The built-in check, or `http` for a hook.")]
    phases: Phases
    action: ActionSent
    position: Position = 100
    scope: Annotated[
        RuleSent, Field(default_factory=_match_all, description="The primitives to check; an empty list means all.")
    ]
    origins: Annotated[
        list[Annotated[PrimitiveOrigin, Field(strict=False)]],
        Field(
            default_factory=list[PrimitiveOrigin],
            max_length=5,
            description="The origins of these primitives; an empty list means all.",
        ),
    ]
    patterns: Annotated[
        list[Text],
        Field(
            default_factory=list[str],
            max_length=_MAX_PATTERNS,
            description="The patterns of the check to use; an empty list means the default patterns.",
        ),
    ]
    max_bytes: Annotated[
        int | None, Field(ge=1, le=100_000_000, description="The maximum size in bytes of JSON, for the check `size`.")
    ] = None
    hook: Annotated[HookSent | None, Field(description="The hook, for the check `http`.")] = None
    enabled: Annotated[bool, Field(description="False disables the guardrail.")] = True


class GuardrailCreate(GuardrailReplace):
    """A new guardrail."""

    name: Annotated[str, Field(pattern=NAME, description="Unique in the tenant.")]


class GuardrailUpdate(BodyModel):
    """Changes of a guardrail; absent fields keep their value."""

    phases: Annotated[Phases | Absent, GIVEN] = None
    action: Annotated[ActionSent | Absent, GIVEN] = None
    position: Annotated[Position | Absent, GIVEN] = None
    enabled: Annotated[bool | Absent, GIVEN, Field(description="False disables the guardrail.")] = None
