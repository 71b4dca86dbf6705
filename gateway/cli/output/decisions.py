"""The decisions of a policy in one line."""

from gateway.domain.tenancy.policy import Decision, Safety

_WORDS = {
    Decision.ALLOW: "run",
    Decision.CONFIRM: "need the user's confirmation",
    Decision.APPROVE: "need an approval",
    Decision.DENY: "are refused",
}


def describe_decisions(*decisions: str) -> str:
    """Describe the decisions for safe, moderate and dangerous calls, in this order."""
    return ", ".join(f"{level} calls {_WORDS[Decision(one)]}" for level, one in zip(Safety, decisions, strict=True))
