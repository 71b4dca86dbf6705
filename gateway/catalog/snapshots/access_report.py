"""Reports on access rules: the primitives of each rule, rules without effect, and the access of one caller."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gateway.catalog.snapshots.access_coverage import all_items, compile_for
from gateway.catalog.snapshots.access_table import AccessVerdict, Item, key_of
from gateway.catalog.snapshots.composition import query_tools
from gateway.catalog.snapshots.limits import MAX_NAMED
from gateway.catalog.snapshots.rule_report import RuleMatches
from gateway.catalog.snapshots.snapshot import Snapshot
from gateway.domain.tenancy.access import AccessEffect, AccessRule, AccessRules


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessFinding:
    """The access of one caller to one primitive."""

    family: str
    source: str
    name: str
    verdict: AccessVerdict
    reason: str

    @property
    def position(self) -> str:
        """The cursor position of the primitive in the report."""
        return "\0".join((self.family, self.source, self.name))


def report_access(snapshot: Snapshot, access: AccessRules, unknown: Collection[str]) -> Sequence[RuleMatches]:
    """Match the rules with the primitives of a snapshot; `unknown` contains entries that name no key or issuer."""
    table, items = compile_for(snapshot, access), list(all_items(snapshot))
    sources = {item.source_name for item in items}
    found: list[RuleMatches] = []
    for position, rule in enumerate(access.rules):
        names = sorted(item.name for item in items if table.matches(position, item))
        warnings = list(_warnings(rule, access, sources, unknown))
        warnings += [] if names else ["matches no current primitive"]
        found.append(RuleMatches(rule=position + 1, count=len(names), names=names[:MAX_NAMED], warnings=warnings))
    return found


def warn_generally(snapshot: Snapshot, access: AccessRules, unknown: Collection[str]) -> Sequence[str]:
    """Return warnings about the rules as a whole, and about the roles."""
    warnings = [
        f"role {position}: the tenant has no such issuer: {entry}"
        for position, rule in enumerate(access.roles, 1)
        for entry in (*rule.who, *rule.unless)
        if entry in unknown
    ]
    table, names = compile_for(snapshot, access), {tool.name for tool in query_tools()}
    allows = [position for position, rule in enumerate(access.rules) if not rule.is_deny]
    hidden = sorted(
        tool.name
        for tool in snapshot.tools
        if tool.name in names and not any(table.matches(position, tool) for position in allows)
    )
    if access.default is AccessEffect.DENY and hidden:
        warnings.append(
            f"the default hides query tools, so operations of large documents cannot be found; allow {hidden} by name"
        )
    return warnings


def _warnings(
    rule: AccessRule, access: AccessRules, sources: Collection[str], unknown: Collection[str]
) -> Iterator[str]:
    if not rule.is_deny and access.default is AccessEffect.ALLOW:
        yield "has no effect: without a deny rule, the default allows everything"
    for source in rule.what.sources:
        if source not in sources:
            yield f"no primitive belongs to a source {source}"
    for entry in (*rule.who, *rule.unless):
        if entry in unknown:
            yield f"the tenant has no such key or issuer: {entry}"


def find_access(snapshot: Snapshot, rules: int) -> Sequence[AccessFinding]:
    """Return the access of a caller to each item of the snapshot, in a stable order."""
    found = [_to_finding(snapshot, rules, item) for item in all_items(snapshot)]
    return sorted(found, key=lambda one: one.position)


def _to_finding(snapshot: Snapshot, rules: int, item: Item) -> AccessFinding:
    verdict = snapshot.access.judge(rules, item)
    family, source, name = key_of(item)
    return AccessFinding(
        family=family, source=source, name=name, verdict=verdict, reason=describe(snapshot.access.access, verdict)
    )


def describe(access: AccessRules, verdict: AccessVerdict) -> str:
    """The verdict in words, with the reason of the rule."""
    if verdict.rule is None:
        return f"no access rule applies, and the default is {access.default}"
    rule = access.rules[verdict.rule - 1]
    verb = "denies" if rule.is_deny else "allows"
    return f"access rule {verdict.rule} {verb} it" + (f": {rule.reason}" if rule.reason else "")
