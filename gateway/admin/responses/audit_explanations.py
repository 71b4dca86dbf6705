"""Audit entries in words: the outcome, and the rule that decided; only the entry is read, because rules change."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from gateway.domain.audit import AuditEntry, AuditKind, RuleKind

_DECIDERS: Final[Mapping[str, str]] = {
    RuleKind.ACCESS: "an access rule",
    RuleKind.APPROVAL: "an approval",
    RuleKind.CREDENTIAL: "the check of the credential",
    RuleKind.EXPOSURE: "the exposure of the source",
    RuleKind.GUARDRAIL: "the guardrail",
    RuleKind.LIMIT: "the limit",
    RuleKind.OPERATOR: "a permission that only the operator has",
    RuleKind.OVERRIDE: "an override of the tool",
    RuleKind.OWNER: "the check of the owner",
    RuleKind.POLICY: "the policy",
    RuleKind.PROFILE: "the profile",
    RuleKind.SCOPE: "the scopes of the key; missing:",
    RuleKind.STATE: "the check of the state that the client sent",
    RuleKind.TENANT: "the check of the tenant in the URL",
    RuleKind.UNKNOWN: "the catalog",
}
"""The subject of "decided by", by kind of rule."""


def explain_entry(entry: AuditEntry) -> str:
    """Describe the outcome of an entry, and the rule that decided then."""
    return "; ".join(_sentences(entry))


def _sentences(entry: AuditEntry) -> Iterator[str]:
    detail, rule = entry.detail, _object_at(entry.detail, "rule")
    if entry.kind in {AuditKind.CHANGE, AuditKind.BREAK}:
        yield f"{entry.principal} changed {entry.target} ({entry.action})"
        yield from _changed(detail)
        return
    subject = f"{entry.action} of {entry.target!r}" if entry.target else entry.action
    verdict = f"was refused with {entry.outcome}" if rule else f"ended with {entry.outcome}"
    yield f"{subject} by {entry.principal} {verdict}"
    if rule:
        decider = _DECIDERS.get(_text_at(rule, "kind"), _text_at(rule, "kind"))
        yield f"decided by {' '.join(filter(None, (decider, _text_at(rule, 'name'))))}"
        if words := _text_at(rule, "words"):
            yield f"it was: {words}"
    elif entry.outcome != "ok":
        yield "the entry names no rule: the call failed, or an older release wrote the entry"
    for name, label in _FACTS.items():
        if (found := detail.get(name)) is not None:
            yield f"{label} {found}"


def _changed(detail: Mapping[str, object]) -> Iterator[str]:
    before, after = _object_at(detail, "before"), _object_at(detail, "after")
    for name in {**before, **after}:
        yield f"{name}: {before.get(name)!r} became {after.get(name)!r}" if before else f"{name}: {after.get(name)!r}"


_FACTS: Final[Mapping[str, str]] = {
    "reason": "message:",
    "count": "number of further equal refusals:",
    "first": "the first at",
    "last": "the last at",
    "policy_revision": "revision of the policy:",
    "catalog_revision": "revision of the catalog:",
    "profile": "profile:",
    "source": "source:",
    "claimed_client": "the client calls itself",
    "address": "from",
}


def _object_at(detail: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = detail.get(name)
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _text_at(members: Mapping[str, object], name: str) -> str:
    found = members.get(name)
    return found if isinstance(found, str) else ""
