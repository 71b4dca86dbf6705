"""Access rules: which of a tenant's primitives its keys and people may list and use.

A deny rule that applies hides a primitive. Otherwise an allow rule that applies shows it. Otherwise the default counts.
The order of the rules has no effect.
"""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import Rule

EVERYONE = "everyone"
KEYS = "keys"
PEOPLE = "people"
KEY, SUBJECT, GROUP, ISSUER = "key:", "subject:", "group:", "issuer:"

MAX_RULES = 500
MAX_WHO = 100
_ANYTHING = Rule()


class AccessEffect(StrEnum):
    """Effect of an access rule."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """Allows or denies some primitives to some callers.

    `who` and `unless` name callers: `everyone`, `keys`, `people`, `key:ID`, `subject:SUBJECT`, `group:ISSUER:NAME` or
    `issuer:ISSUER`. The rule applies to a caller that `who` names and `unless` does not.
    """

    effect: AccessEffect
    who: tuple[str, ...] = (EVERYONE,)
    unless: tuple[str, ...] = ()
    what: Rule = _ANYTHING
    reason: str = ""
    """For administrators; clients never receive it."""

    @property
    def is_deny(self) -> bool:
        """True if the rule denies."""
        return self.effect is AccessEffect.DENY


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """All access rules of a tenant; without any, every caller may use everything."""

    default: AccessEffect = AccessEffect.ALLOW
    rules: tuple[AccessRule, ...] = ()
    version: int = 1


OPEN = AccessRules()
"""The rules of a tenant that has stored none."""


def entries_of(principal: Principal) -> tuple[str, ...]:
    """Return the entries of `who` that name a caller. Texts are compared exactly, without any normalisation."""
    subject, key = SUBJECT + principal.subject, KEY + principal.key
    if not principal.is_person:
        return EVERYONE, KEYS, key, subject
    issuer = ISSUER + principal.subject.partition(":")[0]
    return EVERYONE, PEOPLE, key, subject, issuer, *(GROUP + group for group in principal.groups or ())
