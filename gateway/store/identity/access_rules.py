"""Reading of stored access rules.

A rule that a later release stored, with a member or value that this one does not know, is read in the strictest sense:
an allow rule and a role have no effect, and a deny rule is for everyone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar

import msgspec

from gateway.domain.tenancy.access import UNREADABLE, AccessEffect, AccessRule, Role, RoleRule, is_entry
from gateway.domain.tenancy.profiles import Rule

R = TypeVar("R", AccessRule, RoleRule, Rule)


def read_default(stored: str) -> AccessEffect:
    """The default; a value of a later release denies."""
    is_open = stored == AccessEffect.ALLOW  # guard: access-unknown-default
    return AccessEffect.ALLOW if is_open else AccessEffect.DENY


def read_rules(stored: Sequence[Mapping[str, Any]]) -> tuple[AccessRule, ...]:
    """The rules, in their order."""
    return tuple(_read_rule(each) for each in stored)


def read_roles(stored: Sequence[Mapping[str, Any]]) -> tuple[RoleRule, ...]:
    """The roles, in their order."""
    return tuple(_read_role(each) for each in stored)


def write_roles(roles: Sequence[RoleRule]) -> Sequence[Mapping[str, Any]]:
    """The roles as stored. One without a limit has no member for it, which earlier releases would read as no role."""
    return [
        {name: value for name, value in msgspec.to_builtins(role).items() if name != "kinds" or value} for role in roles
    ]


def _read_rule(stored: Mapping[str, Any]) -> AccessRule:
    """Return a rule; one that this release cannot read keeps its place, so that the numbers of rules stay the same."""
    rule, what = _read(stored, AccessRule), _read(stored.get("what", {}), Rule)
    if rule is not None and what is not None and _knows_entries(rule):
        return rule
    if stored.get("effect") == AccessEffect.ALLOW:
        return AccessRule(effect=AccessEffect.ALLOW, who=(), reason=UNREADABLE)
    return AccessRule(effect=AccessEffect.DENY, what=what or Rule(), reason=UNREADABLE)


def _read_role(stored: Mapping[str, Any]) -> RoleRule:
    rule = _read(stored, RoleRule)
    return rule if rule and _knows_entries(rule) else RoleRule(role=Role.AUDIT, who=(), reason=UNREADABLE)


def _knows_entries(rule: AccessRule | RoleRule) -> bool:
    return all(map(is_entry, (*rule.who, *rule.unless)))  # guard: access-unknown-entries


def _read(stored: Mapping[str, Any], kind: type[R]) -> R | None:
    """Return a stored object; None if it has a member or value that this release does not know."""
    try:
        found = msgspec.convert(stored, kind)
    except msgspec.ValidationError:
        return None
    is_known = stored.keys() <= {each.name for each in fields(kind)}  # guard: access-unknown-members
    return found if is_known else None
