"""Models of rules for primitives, which several requests and responses contain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gateway.domain.tenancy.policy import PolicyRule
from gateway.domain.tenancy.profiles import Rule
from gateway.web.kinds.annotations import merged, sent_model, shown_model
from gateway.web.models import BodyModel, CopiedModel

if TYPE_CHECKING:  # a derived class is no type for a checker

    class RuleSent(BodyModel):
        """A rule in a request."""

    class RuleShown(CopiedModel):
        """A rule in a response."""

    class PolicyRuleSent(BodyModel):
        """A rule of a policy in a request."""

else:
    RuleSent = sent_model(Rule)
    RuleShown = shown_model(Rule)
    PolicyRuleSent = sent_model(PolicyRule)


def rule_of(sent: RuleSent) -> Rule:
    """Return the rule that a request describes."""
    found: Rule = merged(None, sent, Rule)
    return found


def rules_of(sent: Sequence[RuleSent]) -> tuple[Rule, ...]:
    """Return the rules that a request describes."""
    return tuple(map(rule_of, sent))


def policy_rules_of(sent: Sequence[PolicyRuleSent]) -> tuple[PolicyRule, ...]:
    """Return the rules of a policy that a request describes."""
    found: tuple[PolicyRule, ...] = merged(None, list(sent), tuple[PolicyRule, ...])
    return found
