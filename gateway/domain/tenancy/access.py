"""Access rules: the primitives that a tenant's keys and people may list and use, and the roles of its people.

A matching deny rule hides a primitive. Otherwise a matching allow rule shows it. Otherwise the default applies. The
order of the rules has no effect.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from gateway.domain.members.formats import CALLER, PERSON
from gateway.domain.members.markers import About, Check, Form, Length, Option, Shape
from gateway.domain.members.values import check_printable
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.limits import MAX_ACCESS_RULES, MAX_ROLE_KINDS, MAX_ROLE_RULES, MAX_WHO
from gateway.domain.tenancy.principals import Principal
from gateway.domain.tenancy.profiles import Rule

EVERYONE = "everyone"
KEYS = "keys"
PEOPLE = "people"
KEY, SUBJECT, GROUP, ISSUER, SCOPE = "key:", "subject:", "group:", "issuer:", "scope:"

_ANYTHING = Rule()
_Callers = tuple[Annotated[str, Length(most=300), Form(CALLER), Check(check_printable)], ...]
_People = tuple[Annotated[str, Length(most=300), Form(PERSON), Check(check_printable)], ...]
_Kinds = tuple[Annotated[str, Length(most=64), Check(check_printable)], ...]
_Reason = Annotated[str, Length(most=200), Check(check_printable)]


class AccessEffect(StrEnum):
    """Effect of an access rule."""

    ALLOW = "allow"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """Allows or denies some primitives to some callers.

    `who` and `unless` name callers: `everyone`, `keys`, `people`, `key:ID`, `subject:SUBJECT`, `group:ISSUER:NAME`,
    `issuer:ISSUER` or `scope:ISSUER:NAME`. The rule applies to a caller that `who` names and `unless` does not.

    A scope only permits: `who` of an allow rule and `unless` of a deny rule name scopes, the other members do not. So a
    caller whose scopes are not known, as in a task, is a caller without scopes.
    """

    effect: Annotated[AccessEffect, About("Deny rules take precedence over allow rules.")]
    who: Annotated[
        _Callers,
        Length(least=1, most=MAX_WHO),
        About(
            "The callers to whom the rule applies if any entry matches: `everyone`, `keys`, `people`, `key:ID`,"
            " `subject:SUBJECT`, `group:ISSUER:GROUP`, `issuer:ISSUER` or `scope:ISSUER:SCOPE`. Only an allow rule"
            " names scopes here."
        ),
    ] = (EVERYONE,)
    unless: Annotated[
        _Callers,
        Length(most=MAX_WHO),
        About("The callers to whom the rule does not apply. Only a deny rule names scopes here."),
    ] = ()
    what: Annotated[Rule, About("The primitives; by default, all.")] = _ANYTHING
    reason: Annotated[_Reason, About("The reason, for administrators; clients do not see it.")] = ""

    @property
    def is_deny(self) -> bool:
        """True if the rule denies."""
        return self.effect is AccessEffect.DENY


class Role(StrEnum):
    """A permission of people. No token for an MCP URL carries it, because an agent holds such a token."""

    APPROVE = "approve"
    """Decide about calls that wait for an approval of another subject, in a browser."""
    ADMINISTER = "administer"
    """Use the admin API of the tenant, with an access token for it, like a key with the scope `admin`."""
    AUDIT = "audit"
    """Read the audit trail over the admin API, with an access token for it, like a key with the scope `audit`."""

    @property
    def scope(self) -> Scope:
        """The scope of keys that permits the same."""
        return _SCOPES[self]


_SCOPES = {Role.APPROVE: Scope.APPROVE, Role.ADMINISTER: Scope.ADMIN, Role.AUDIT: Scope.AUDIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRule:
    """Gives a role to people that `who` names and `unless` does not; entries as in access rules, without keys."""

    role: Annotated[
        Role,
        About(
            "The role: `approve` permits decisions about calls of other subjects on the approvals page; `administer`"
            " and `audit` permit, with an access token for the admin API, what the scopes `admin` and `audit` of a key"
            " permit."
        ),
    ]
    who: Annotated[
        _People,
        Length(least=1, most=MAX_WHO),
        About(
            "The people who have the role if any entry matches: `people`, `subject:SUBJECT`, `group:ISSUER:GROUP` or"
            " `issuer:ISSUER`."
        ),
    ]
    unless: Annotated[_People, Length(most=MAX_WHO), About("The people without the role.")] = ()
    reason: Annotated[_Reason, About("The reason, for administrators.")] = ""
    kinds: Annotated[
        _Kinds,
        Length(most=MAX_ROLE_KINDS),
        About(
            "Limits the role `administer` to manifests of these kinds, such as `profile`: their objects can be set and"
            " removed by an application, and nothing else of the admin API can be used. By default, no limit."
        ),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """All access rules of a tenant; without any, every caller may use everything, and no person has a role."""

    default: Annotated[
        AccessEffect, About("The effect for a primitive and a caller to which no rule applies."), Shape.KEPT
    ] = AccessEffect.ALLOW
    rules: Annotated[
        tuple[AccessRule, ...],
        Length(most=MAX_ACCESS_RULES),
        About("The rules; their order has no effect."),
        Option(is_file=True),
        Shape.KEPT,
    ] = ()
    roles: Annotated[
        tuple[RoleRule, ...],
        Length(most=MAX_ROLE_RULES),
        About("The roles of people."),
        Option(is_file=True),
        Shape.KEPT,
    ] = ()
    version: int = 1

    @property
    def has_unreadable(self) -> bool:
        """True if a rule or a role replaces one of a later release."""
        return UNREADABLE in {*(rule.reason for rule in self.rules), *(role.reason for role in self.roles)}

    @property
    def approvers(self) -> tuple[RoleRule, ...]:
        """The rules that give the role `approve`."""
        return tuple(rule for rule in self.roles if rule.role is Role.APPROVE)

    def scopes_of_issuer(self, issuer: str) -> tuple[str, ...]:
        """The scopes of an issuer, by its name, that rules name."""
        start, entries = f"{SCOPE}{issuer}:", {entry for rule in self.rules for entry in (*rule.who, *rule.unless)}
        return tuple(sorted(entry.removeprefix(start) for entry in entries if entry.startswith(start)))


OPEN = AccessRules()
"""The rules of a tenant that has stored none."""


UNREADABLE = "stored by a later release; this release cannot read it"
"""The reason of a rule that replaces one of a later release."""


def is_entry(text: str) -> bool:
    """True if this release knows the kind of an entry of `who` or `unless`."""
    return text in {EVERYONE, KEYS, PEOPLE} or text.startswith((KEY, SUBJECT, GROUP, ISSUER, SCOPE))


def entries_of(principal: Principal) -> tuple[str, ...]:
    """Return the entries of `who` that name a caller. Texts are compared exactly, without any normalisation."""
    subject, key = SUBJECT + principal.subject, KEY + principal.key
    if not principal.is_person:
        return EVERYONE, KEYS, key, subject
    issuer = ISSUER + principal.subject.partition(":")[0]
    groups = [GROUP + group for group in principal.groups or ()]
    return EVERYONE, PEOPLE, key, subject, issuer, *groups, *(SCOPE + scope for scope in principal.token_scopes)


def find_restricting_scopes(effect: AccessEffect, who: Iterable[str], unless: Iterable[str]) -> list[str]:
    """Return the entries of a rule whose scopes would take primitives away; no rule may have any."""
    return [entry for entry in (who if effect is AccessEffect.DENY else unless) if entry.startswith(SCOPE)]


def describe_people(rule: RoleRule) -> str:
    """The people of a rule, in one line."""
    return ", ".join(rule.who) + (f", unless {', '.join(rule.unless)}" if rule.unless else "")


def may_concern(rule: RoleRule, issuer: str) -> bool:
    """True if the people of an issuer, by its name, can get a role from a rule, or lose it."""
    parts = {tuple(entry.split(":")[:2]) for entry in (*rule.who, *rule.unless)}
    return (PEOPLE,) in parts or not parts.isdisjoint((kind[:-1], issuer) for kind in (SUBJECT, GROUP, ISSUER))


@dataclass(frozen=True, slots=True)
class Rights:
    """The roles of a person, and the kinds to whose manifests the role `administer` is limited; None for no limit."""

    roles: frozenset[Role] = frozenset()
    kinds: frozenset[str] | None = None


def rights_of(access: AccessRules, principal: Principal) -> Rights:
    """Return the rights of a person; a key has none, because it has scopes.

    While the person's groups are not known, a group gives no role, and an exception for a group takes it away.
    """
    if not principal.is_person:  # guard: role-of-people
        return Rights()
    own, knows_groups = set(entries_of(principal)), principal.packed_groups is not None

    def is_excepted(rule: RoleRule) -> bool:
        return not own.isdisjoint(rule.unless) or (
            not knows_groups and any(entry.startswith(GROUP) for entry in rule.unless)  # guard: role-unknown-groups
        )

    own_rules = [rule for rule in access.roles if not own.isdisjoint(rule.who) and not is_excepted(rule)]
    limits = [rule.kinds for rule in own_rules if rule.role is Role.ADMINISTER]
    kinds = frozenset(kind for limit in limits for kind in limit) if limits and all(limits) else None
    return Rights(frozenset(rule.role for rule in own_rules), kinds)
