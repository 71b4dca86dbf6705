"""`gateway policy`: decisions by safety level and rule, and a tenant's limits."""

import json
from dataclasses import fields

import click

from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.kinds.option_types import read_member
from gateway.cli.kinds.single_commands import SingletonCommands
from gateway.cli.output.printing import Shown, echo
from gateway.cli.output.rule_matches import describe_matches, list_warnings
from gateway.cli.output.tables import render_pairs
from gateway.domain.tenancy.policy import Limits
from gateway.kinds.singletons import POLICY

_LEVELS = ("safe", "moderate", "dangerous")
_LIMITS = tuple(field.name for field in fields(Limits))


def _warn(context: AdminContext, written: JsonObject) -> None:
    """Warn of rules without effect, after a change of rules."""
    if written.get("rules"):
        for warning in list_warnings(context.admin.send("POST", context.tenant_path("policy", "check"), {})):
            echo(f"warning: {warning}", err=True)


def _describe(found: JsonObject) -> Shown:
    decisions = [(level, text_at(found, level)) for level in _LEVELS]
    limits = [(name, _describe_limit(found, name)) for name in _LIMITS]
    origins = "any" if found.get("http_origins") is None else text_at(found, "http_origins") or "none"
    rules = [(f"rule {number}", _describe_rule(rule)) for number, rule in enumerate(to_objects(found.get("rules")), 1)]
    recorded = [("recorded", _describe_recording(rule)) for rule in to_objects(found.get("recorded_arguments"))]
    return render_pairs([*rules, *decisions, *recorded, *limits, ("http origins", origins)])


def _describe_rule(rule: JsonObject) -> str:
    facts = [f"{name} {text_at(rule, name)}" for name in ("tool", "source", "profile", "level") if text_at(rule, name)]
    conditions = [
        f"{text_at(one, 'pointer')} {text_at(one, 'operator')} {json.dumps(one.get('value'), ensure_ascii=False)}"
        for one in to_objects(rule.get("when"))
    ]
    reason = text_at(rule, "reason")
    about = " and ".join([*facts, *conditions]) or "every call"
    return f"{text_at(rule, 'decision')}: {about}" + (f" ({reason})" if reason else "")


def _describe_recording(rule: JsonObject) -> str:
    about = [f"{name} {text_at(rule, name)}" for name in ("tool", "source") if text_at(rule, name)]
    parts = [f"{name} {text_at(rule, name)}" for name in ("keep", "hash", "drop") if rule.get(name)]
    return f"{' and '.join(about) or 'every call'}: {'; '.join(parts) or 'no arguments'}"


def _describe_limit(found: JsonObject, name: str) -> str:
    stored, effective = text_at(found, "limits", name), text_at(found, "status", "effective", name)
    ceiling = text_at(found, "status", "ceilings", name)
    return f"{stored} (ceiling {ceiling})" if stored == effective else f"{stored}, cut to its ceiling {ceiling}"


policy = SingletonCommands(
    kind=POLICY,
    about="Show, set, change and check a tenant's policy: decisions by safety level and rule, and limits.",
    describe=_describe,
    warn=_warn,
).group()


@policy.command("check")
@click.argument("file", required=False)
@with_tenant
def check_rules(context: AdminContext, file: str | None) -> None:
    """Show which primitives each rule of FILE (JSON or YAML; - reads stdin), or each stored rule, matches now."""
    body: JsonObject = {} if file is None else {"rules": read_member(file, "rules")}
    found = context.admin.send("POST", context.tenant_path("policy", "check"), body)
    context.show(found, lambda: describe_matches(found))
