"""Safety levels of calls, and a tenant's policy for them."""

from dataclasses import dataclass
from enum import StrEnum


class Safety(StrEnum):
    """Potential harm of a call."""

    SAFE = "safe"
    MODERATE = "moderate"
    DANGEROUS = "dangerous"


Levels = tuple[Safety, Safety]
"""The declared and the assessed level."""


class Decision(StrEnum):
    """Requirement for a call of some safety level."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    APPROVE = "approve"
    DENY = "deny"


WORKING = (Decision.ALLOW, Decision.CONFIRM, Decision.DENY)
"""The decisions that a policy may contain; `approve` is not among them yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one tenant; rates per second, the rest counts."""

    calls_per_second: float = 100.0
    burst: int = 200
    concurrency: int = 64
    sessions: int = 1000
    streams: int = 100
    primitives: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The decision for each safety level in one tenant, and the tenant's limits."""

    safe: Decision = Decision.ALLOW
    moderate: Decision = Decision.ALLOW
    dangerous: Decision = Decision.ALLOW
    limits: Limits = Limits()
    http_origins: tuple[str, ...] | None = None
    """The only origins that declared `http` handlers may call, sorted; None: any that the gateway may connect to."""
    version: int = 1

    def decision_for(self, safety: Safety) -> Decision:
        """Return the decision for a call of this level."""
        return Decision(getattr(self, safety.value))
