"""Guardrails: a tenant's ordered checks of calls and results."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from gateway.domain.identifiers import GuardrailId, ProfileId
from gateway.domain.primitives import Primitive
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tenancy.selection import compile_selection
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


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSettings:
    """The HTTP hook of a guardrail; `credential` is the name of the stored signing secret."""

    url: str
    credential: str
    timeout_ms: int = 1000
    is_fail_open: bool = False
    """True if a call is permitted when the hook returns no valid response; if False, that is a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardrailRule:
    """The declared part of a guardrail."""

    check: GuardrailCheck
    phases: tuple[GuardrailPhase, ...]
    action: GuardrailAction
    position: int = 100
    """Guardrails run in order of position, then of name."""
    scope: Rule = _EVERYTHING
    origins: tuple[PrimitiveOrigin, ...] = ()
    """Origins of the primitives that are checked; empty for all."""
    patterns: tuple[str, ...] = ()
    """Names of the patterns in use; empty for the default patterns of the check."""
    max_bytes: int | None = None
    hook: HookSettings | None = None
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """One guardrail of a tenant."""

    id: GuardrailId
    name: str
    rule: GuardrailRule
    created_at: datetime
    updated_at: datetime
    version: int = 1
    is_barred: bool = False
    """True if the tenant's policy does not allow requests to the origin of the hook."""

    def covers(self, item: Tool | Primitive) -> bool:
        """True if the guardrail is enabled and its scope contains the primitive."""
        rule = self.rule
        if not rule.enabled or (rule.origins and item.origin not in rule.origins):
            return False
        scope = Profile(id=ProfileId(""), name="", include=(rule.scope,))
        return compile_selection(scope)(item)
