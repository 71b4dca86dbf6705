"""The compiled access rules of a snapshot: the rules that apply to a caller, and the primitives that they hide.

For each primitive, an integer has one bit per rule that matches it, computed once per snapshot. For each caller, an
integer has one bit per rule that applies to it. So a view costs one integer comparison per primitive, regardless of the
number of rules.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import translate

import msgspec

from gateway.definitions.policy.paths import readings_of_uri
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.access import GROUP, OPEN, SCOPE, AccessEffect, AccessRule, AccessRules, entries_of
from gateway.domain.tenancy.principals import Principal, pack_claims
from gateway.domain.tenancy.profiles import Rule
from gateway.domain.tenancy.selection import Facets, RuleTest, compile_rule, facets_of
from gateway.domain.tools import Tool

Item = Tool | Primitive
_Key = tuple[str, str, str]
_READ = frozenset({Family.RESOURCE.value, Family.TEMPLATE.value})


@dataclass(frozen=True, slots=True)
class AccessVerdict:
    """The access of a caller to a primitive; `rule` is the number of the deciding rule, from 1, or None for the
    default.
    """

    is_allowed: bool
    rule: int | None


class AccessTable:
    """The compiled rules.

    `coverage` maps each primitive to the rules that match it. Primitives without an entry are hidden, unless every
    caller may use everything.
    """

    def __init__(self, access: AccessRules = OPEN, coverage: Mapping[_Key, int] | None = None) -> None:
        self.access = access
        self._coverage = coverage or {}
        self._who = _bits_by_entry(rule.who for rule in access.rules)
        self._unless = _bits_by_entry(rule.unless for rule in access.rules)
        self._denies = sum(1 << index for index, rule in enumerate(access.rules) if rule.is_deny)
        self._allows = (1 << len(access.rules)) - 1 & ~self._denies
        self._is_open = access.default is AccessEffect.ALLOW
        self._deny_uri_tests = _uri_tests(access.rules)

    @property
    def is_trivial(self) -> bool:
        """True if every caller may use everything."""
        return self._is_open and not self._denies

    def rules_for(self, principal: Principal) -> int:
        """Return, as a bit set, the rules that can decide for a caller: with the default `allow`, only deny rules.

        If the caller's groups are not known, the stricter interpretation of group rules is used: deny rules apply,
        allow rules do not.
        """
        entries = entries_of(principal)
        named, excepted = _union(self._who, entries), _union(self._unless, entries)
        if principal.is_person and principal.packed_groups is None:  # guard: access-unknown-groups
            named |= _of_groups(self._who) & self._denies
            excepted |= _of_groups(self._unless) & self._allows
        found = named & ~excepted  # guard: access-unless
        return found & self._denies if self._is_open else found

    def hides_nothing(self, rules: int) -> bool:
        """True if these rules hide no primitive from their caller."""
        return self._is_open and not rules

    def allows(self, rules: int, item: Item) -> bool:
        """True if a caller to whom these rules apply may use a primitive."""
        matching = self._coverage.get(key_of(item))
        if matching is None:
            return self.is_trivial
        found = matching & rules
        return not found & self._denies and (self._is_open or found != 0)  # guard: access-denies

    def allows_linked(self, rules: int, resource: Primitive) -> bool:
        """True if a caller to whom these rules apply may read a resource that no list contains."""
        if self.denies_uri(rules, resource, resource.name):
            return False
        facets = facets_of(resource)
        applying = [(index, rule) for index, rule in enumerate(self.access.rules) if rules >> index & 1]
        found = sum(1 << index for index, rule in applying if compile_rule(rule.what)(facets))
        return not found & self._denies and (self._is_open or found != 0)  # guard: access-linked

    def denies(self, rules: int, item: Item) -> bool:
        """True if a deny rule hides a primitive from a caller to whom these rules apply, regardless of the default."""
        return bool(self._coverage.get(key_of(item), 0) & rules & self._denies)

    def judge(self, rules: int, item: Item) -> AccessVerdict:
        """Return the access of a caller to a primitive, and the first rule that decides it."""
        found = self._coverage.get(key_of(item), 0) & rules
        deciding = found & self._denies or found
        rule = None if not deciding else (deciding & -deciding).bit_length()
        return AccessVerdict(self.allows(rules, item), rule)

    def permitting_scopes(self, principal: Principal, item: Item) -> Sequence[str]:
        """Return the scopes, each as `ISSUER:SCOPE`, of which one more would permit a primitive to a person."""
        own, matching = f"{SCOPE}{principal.subject.partition(':')[0]}:", self._coverage.get(key_of(item), 0)

        def permits(entry: str) -> bool:
            scopes = pack_claims([*principal.token_scopes, entry.removeprefix(SCOPE)])
            return self.allows(self.rules_for(replace(principal, packed_scopes=scopes)), item)

        bits_by_entry = [*self._who.items(), *self._unless.items()]
        found = {entry for entry, bits in bits_by_entry if entry.startswith(own) and bits & matching}
        return sorted(entry.removeprefix(SCOPE) for entry in found if principal.is_person and permits(entry))

    def matches(self, index: int, item: Item) -> bool:
        """True if the rule at an index, from 0, matches a primitive."""
        return bool(self._coverage.get(key_of(item), 0) >> index & 1)

    def denies_uri(self, rules: int, template: Primitive, uri: str) -> bool:
        """True if a deny rule on names matches a URI that a caller reads through a template.

        One matching interpretation of the URI is sufficient, and letter case is ignored.
        """
        readings = readings_of_uri(uri)
        facets = [replace(facets_of(template), family=Family(family), safety=template.level) for family in _READ]
        for index, patterns, matches in self._deny_uri_tests:
            if rules >> index & 1 and any(map(matches, facets)) and _any_matches(patterns, readings):
                return True
        return False

    def digest(self, rules: int) -> str:
        """An identifier of the rules that apply to a caller; it does not change when other rules change."""
        applying = [rule for index, rule in enumerate(self.access.rules) if rules >> index & 1]
        packed = msgspec.msgpack.encode((self.access.default, applying))
        return hashlib.blake2b(packed, digest_size=12).hexdigest()


@dataclass(frozen=True, slots=True)
class CoveredItem:
    """A primitive with the facets that rules match: `facets` for all rules, `deny_only_facets` only for deny rules."""

    key: _Key
    facets: Sequence[Facets]
    deny_only_facets: Sequence[Facets] = field(default=())


def key_of(item: Item) -> _Key:
    """The key of a primitive in a snapshot: its family, its source and its name."""
    family = item.family.value if isinstance(item, Primitive) else Family.TOOL.value
    return family, item.source_name, item.name


def compile_access(access: AccessRules, items: Iterable[CoveredItem]) -> AccessTable:
    """Compile the rules for the primitives of a snapshot; equal conditions of several rules are evaluated once."""
    bits_by_condition: dict[Rule, int] = {}
    for index, rule in enumerate(access.rules):
        bits_by_condition[rule.what] = bits_by_condition.get(rule.what, 0) | 1 << index
    tests = [(compile_rule(what), bits) for what, bits in bits_by_condition.items()]
    denies = sum(1 << index for index, rule in enumerate(access.rules) if rule.is_deny)
    coverage: dict[_Key, int] = {}
    for item in items:
        matching = sum(bits for matches, bits in tests if any(map(matches, item.facets)))
        if item.deny_only_facets:  # guard: access-operation-behind
            matching |= sum(bits & denies for matches, bits in tests if any(map(matches, item.deny_only_facets)))
        coverage[item.key] = coverage.get(item.key, 0) | matching
    return AccessTable(access, coverage)


def _bits_by_entry(lists: Iterable[Sequence[str]]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for index, entries in enumerate(lists):
        for entry in entries:
            found[entry] = found.get(entry, 0) | 1 << index
    return found


def _union(by_entry: Mapping[str, int], entries: Iterable[str]) -> int:
    found = 0
    for entry in entries:
        found |= by_entry.get(entry, 0)
    return found


def _of_groups(by_entry: Mapping[str, int]) -> int:
    return _union(by_entry, [entry for entry in by_entry if entry.startswith(GROUP)])


_UriTest = tuple[int, Sequence[re.Pattern[str]], RuleTest]


def _uri_tests(rules: Sequence[AccessRule]) -> Sequence[_UriTest]:
    """The deny rules on names: their index, their patterns, and their other conditions."""
    return [
        (
            index,
            [re.compile(translate(name.casefold())) for name in rule.what.names],
            compile_rule(replace(rule.what, names=())),
        )
        for index, rule in enumerate(rules)
        if rule.is_deny and rule.what.names
    ]


def _any_matches(patterns: Sequence[re.Pattern[str]], readings: Sequence[str]) -> bool:
    return any(pattern.match(reading.casefold()) is not None for pattern in patterns for reading in readings)


UNRESTRICTED = AccessTable()
"""The table of a tenant without access rules."""
