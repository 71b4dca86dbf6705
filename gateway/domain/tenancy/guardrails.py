"""Guardrails: a tenant's ordered checks of calls and results."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from gateway.domain.identifiers import GuardrailId, ProfileId
from gateway.domain.members.markers import About, Bounds, Length, Option, Packed, Shape
from gateway.domain.members.values import CredentialName, ShortText, Url
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.recorded_fields import Omitted
from gateway.domain.tenancy.selection import compile_selection
from gateway.domain.text_search.guardrail_checks import GuardrailCheck
from gateway.domain.tools import PrimitiveOrigin, Tool


class GuardrailPhase(StrEnum):
    """Time at which a guardrail checks a call."""

    CALL = "call"
    """Before a call is prepared: its arguments, validated and with defaults."""
    RESULT = "result"
    """Before the client receives a result: text, structured content, embedded resources."""


class GuardrailAction(StrEnum):
    """Effect of a finding."""

    BLOCK = "block"
    MARK = "mark"
    """The result is marked for the client and its model; for results only."""
    LOG = "log"


_EVERYTHING = Rule()


class HookFailure(StrEnum):
    """Outcome of a check whose hook returns no valid response."""

    OPEN = "open"
    """The call is permitted."""
    CLOSED = "closed"
    """It is a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The HTTP hook of a guardrail."""

    url: Annotated[Url, About("The URL that receives the signed POST request.")]
    credential: Annotated[
        CredentialName, About("The stored credential that signs requests; its value is `whsec_` and base64.")
    ]
    timeout_ms: Annotated[
        int,
        Bounds(least=50, most=5000),
        Shape.MILLISECONDS,
        About("Milliseconds that a call waits for the response."),
    ] = 1000
    fail: Annotated[
        HookFailure,
        About("The outcome without a valid response: `open` allows the call, `closed` is a finding."),
        Packed("is_fail_open", {HookFailure.OPEN: True, HookFailure.CLOSED: False}),
    ] = HookFailure.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """One guardrail of a tenant."""

    id: GuardrailId
    name: str
    check: Annotated[GuardrailCheck, About("The built-in check, or `http` for a hook."), Shape.LISTED]
    phases: Annotated[
        tuple[GuardrailPhase, ...],
        Length(least=1, most=2),
        About("The phases of the check: arguments before the call, the result before the client receives it."),
        Option(name="phase"),
        Shape.LISTED,
    ]
    action: Annotated[GuardrailAction, About("The action on a finding; `mark` applies to results only."), Shape.LISTED]
    position: Annotated[
        int,
        Bounds(least=0, most=1000),
        About("The position in the order of guardrails, lowest first; equal positions are ordered by name."),
        Shape.LISTED,
    ] = 100
    scope: Annotated[
        Rule,
        About("The primitives to check; an empty list means all."),
        Option(older={"names": "tool", "sources": "source"}),
    ] = _EVERYTHING
    origins: Annotated[
        tuple[PrimitiveOrigin, ...],
        Length(most=5),
        About("The origins of these primitives; an empty list means all."),
        Option(name="origin"),
    ] = ()
    patterns: Annotated[
        tuple[ShortText, ...],
        Length(most=50),
        About("The patterns of the check to use; an empty list means the default patterns."),
        Option(name="pattern", metavar="NAME"),
    ] = ()
    max_bytes: Annotated[
        int | None, Bounds(least=1, most=100_000_000), About("The maximum size in bytes of JSON, for the check `size`.")
    ] = None
    hook: Annotated[
        HookSettings | None,
        About("The hook, for the check `http`."),
        Option(older={"url": "hook", "credential": "credential", "timeout_ms": "timeout-ms", "fail": "fail"}),
    ] = None
    enabled: Annotated[bool, About("False disables the guardrail."), Shape.LISTED] = True
    version: int = 1
    created_at: datetime
    updated_at: datetime
    is_barred: Omitted[bool] = False
    """True if the tenant's policy does not allow requests to the origin of the hook."""

    def covers(self, item: Tool | Primitive) -> bool:
        """True if the guardrail is enabled and its scope contains the primitive."""
        if not self.enabled or (self.origins and item.origin not in self.origins):
            return False
        scope = Profile(id=ProfileId(""), name="", include=(self.scope,))
        return compile_selection(scope)(item)
