"""Models of rules for primitives, which several requests and responses contain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from gateway.domain.tenancy.access import AccessRule, RoleRule
from gateway.domain.tenancy.policy import PolicyRule
from gateway.domain.tenancy.profiles import Rule
from gateway.web.kinds.annotations import merged, sent_model, shown_model
from gateway.web.models import BodyModel, CopiedModel

T = TypeVar("T")

if TYPE_CHECKING:  # a derived class is no type for a checker

    class RuleSent(BodyModel):
        """A rule in a request."""

    class RuleShown(CopiedModel):
        """A rule in a response."""

    class PolicyRuleSent(BodyModel):
        """A rule of a policy in a request."""

    class AccessRuleSent(BodyModel):
        """An access rule in a request."""

    class RoleRuleSent(BodyModel):
        """A role in a request."""

else:
    RuleSent = sent_model(Rule)
    RuleShown = shown_model(Rule)
    PolicyRuleSent = sent_model(PolicyRule)
    AccessRuleSent = sent_model(AccessRule)
    RoleRuleSent = sent_model(RoleRule)


def rule_of(sent: RuleSent) -> Rule:
    """Return the rule that a request describes."""
    found: Rule = merged(None, sent, Rule)
    return found


def rules_of(sent: Sequence[RuleSent]) -> tuple[Rule, ...]:
    """Return the rules that a request describes."""
    return tuple(map(rule_of, sent))


def policy_rules_of(sent: Sequence[PolicyRuleSent]) -> tuple[PolicyRule, ...]:
    """Return the rules of a policy that a request describes."""
    return _all_of(sent, PolicyRule)


def access_rules_of(sent: Sequence[AccessRuleSent]) -> tuple[AccessRule, ...]:
    """Return the access rules that a request describes."""
    return _all_of(sent, AccessRule)


def roles_of(sent: Sequence[RoleRuleSent]) -> tuple[RoleRule, ...]:
    """Return the roles that a request describes."""
    return _all_of(sent, RoleRule)


def _all_of(sent: Sequence[BodyModel], of: type[T]) -> tuple[T, ...]:
    found: list[T] = [merged(None, each, of) for each in sent]
    return tuple(found)
