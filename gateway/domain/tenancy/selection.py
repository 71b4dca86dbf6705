"""Compiled selection of a profile: its rules are compiled once and applied to one primitive at a time."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import translate

from gateway.domain.primitives import Family, Primitive
from gateway.domain.tenancy.policy import Safety
from gateway.domain.tenancy.profiles import Profile, Rule
from gateway.domain.tools import Tool

_SPECIAL = frozenset("*?[")
Selection = Callable[[Tool | Primitive], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Properties of a primitive that rules can test; only imported operations have method and tags."""

    family: Family
    name: str
    safety: Safety
    source: str = ""
    method: str = ""
    tags: tuple[str, ...] = ()


RuleTest = Callable[[Facets], bool]
"""True if a rule matches a primitive with these properties."""


def compile_selection(profile: Profile) -> Selection:
    """Return a predicate: True if an include rule matches (or there is none) and no exclude rule does."""
    include = [compile_rule(rule) for rule in profile.include]
    exclude = [compile_rule(rule) for rule in profile.exclude]

    def shows(item: Tool | Primitive) -> bool:
        facets = facets_of(item)
        return (not include or _any(include, facets)) and not _any(exclude, facets)

    return shows


def compile_exclusion(profile: Profile) -> Selection:
    """Return a predicate: True if an exclude rule matches."""
    exclude = [compile_rule(rule) for rule in profile.exclude]
    return lambda item: _any(exclude, facets_of(item))


def facets_of(item: Tool | Primitive) -> Facets:
    """Return the testable properties of a primitive."""
    if isinstance(item, Primitive):
        return Facets(family=item.family, name=item.name, safety=item.safety, source=item.source_name)
    return Facets(
        family=Family.TOOL,
        name=item.name,
        safety=item.safety,
        source=item.source_name,
        method=item.identity.partition(" ")[0].upper(),
        tags=item.tags,
    )


def compile_rule(rule: Rule) -> RuleTest:
    """Return a predicate for one rule: all set members must match. A pattern does not backtrack between two `*`."""
    exact = frozenset(name for name in rule.names if _SPECIAL.isdisjoint(name))
    globs = [translate(name) for name in rule.names if name not in exact]
    has_glob = re.compile("|".join(globs)).match if globs else None  # one search for all patterns costs half
    methods = frozenset(method.upper() for method in rule.methods)
    tags = frozenset(rule.tags)

    def matches(facets: Facets) -> bool:
        return (
            (not rule.families or facets.family.value in rule.families)
            and (not rule.safety or facets.safety in rule.safety)
            and (not rule.sources or facets.source in rule.sources)
            and (not methods or facets.method in methods)
            and (not tags or not tags.isdisjoint(facets.tags))
            and (not rule.names or facets.name in exact or (has_glob is not None and has_glob(facets.name) is not None))
        )

    return matches


def _any(tests: Sequence[RuleTest], facets: Facets) -> bool:
    return any(matches(facets) for matches in tests)
