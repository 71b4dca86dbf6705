"""How dangerous a call may be and what a tenant wants done about it."""

from dataclasses import dataclass
from enum import StrEnum


class Safety(StrEnum):
    """How much harm a call can do."""

    SAFE = "safe"
    MODERATE = "moderate"
    DANGEROUS = "dangerous"


Levels = tuple[Safety, Safety]
"""A level that was declared, and the one that was assessed."""


class Decision(StrEnum):
    """What a call of some safety level needs before it runs."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    APPROVE = "approve"
    DENY = "deny"


WORKING = (Decision.ALLOW, Decision.CONFIRM, Decision.DENY)
"""The decisions that a policy of this version may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of everything one tenant may use; rates per second, the rest counts."""

    calls_per_second: float = 100.0
    burst: int = 200
    concurrency: int = 64
    sessions: int = 1000
    streams: int = 100
    primitives: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What each safety level needs in one tenant, and the tenant's limits."""

    safe: Decision = Decision.ALLOW
    moderate: Decision = Decision.ALLOW
    dangerous: Decision = Decision.ALLOW
    limits: Limits = Limits()
    http_origins: tuple[str, ...] | None = None
    """The only origins that declared `http` handlers may call, sorted; None: any that the gateway may dial."""
    version: int = 1

    def decision_for(self, safety: Safety) -> Decision:
        """What a call of this level needs."""
        return Decision(getattr(self, safety.value))
