"""Rules that keep a primitive from a client, for the audit trail and for explanations; clients learn no reason."""

from gateway.catalog.snapshots.access_report import describe
from gateway.domain.audit import RuleKind
from gateway.domain.primitives import Family, Primitive
from gateway.domain.tools import Tool
from gateway.errors import DecidingRule
from gateway.registry.registry import Registry

_Item = Tool | Primitive


def absence_rule(registry: Registry, family: Family, name: str) -> DecidingRule:
    """Return the rule by which a registry shows no primitive of this name or URI; it is found without the database."""
    item = find_active(registry, family, name)
    if item is None:
        return DecidingRule(RuleKind.UNKNOWN, words=f"no active {family.replace('_', ' ')} has this name")
    verdict = registry.access_verdict(item)
    access = registry.view.snapshot.access
    if not verdict.is_allowed:
        number = "" if verdict.rule is None else str(verdict.rule)
        return DecidingRule(RuleKind.ACCESS, number, describe(access.access, verdict))
    if item.name in registry.view.snapshot.unlisted:
        return DecidingRule(RuleKind.OVERRIDE, words="an override hides it; handlers and the query tools can call it")
    if isinstance(item, Tool) and item.name not in registry.view.snapshot.by_name:
        return DecidingRule(RuleKind.EXPOSURE, item.source_name, "its source is exposed only through the query tools")
    if family is Family.RESOURCE and item.name in registry.shown.templates.by_name:
        return DecidingRule(RuleKind.ACCESS, words="a deny rule on names matches this URI")
    return DecidingRule(RuleKind.PROFILE, registry.profile, f"the profile {registry.profile} does not contain it")


def find_active(registry: Registry, family: Family, name: str) -> _Item | None:
    """Return the active primitive of this name, regardless of profile and access rules."""
    snapshot, whole = registry.view.snapshot, registry.view.whole
    match family:
        case Family.TOOL:
            name = registry.stored_name(name)
            found = snapshot.by_name.get(name) or snapshot.unlisted.get(name) or snapshot.called(name)
            named = (source.get(name) for source in snapshot.operations.values())
            return found or next((tool for tool in named if tool is not None and tool.name == name), None)
        case Family.RESOURCE:
            return whole.resources.by_name.get(name) or next(whole.templates_for(name), None)
        case Family.TEMPLATE:
            return whole.templates.by_name.get(name)
        case Family.PROMPT:
            return whole.prompts.by_name.get(name)
