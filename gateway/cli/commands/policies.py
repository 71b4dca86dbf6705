"""`gateway policy`: decisions by safety level and rule, and a tenant's limits."""

import json
from dataclasses import fields
from typing import Literal, TypedDict, Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declarations import only_one, read_declarations
from gateway.cli.input.json_fields import JsonObject, text_at, to_objects
from gateway.cli.output.rule_matches import describe_matches, list_warnings
from gateway.cli.output.tables import render_pairs
from gateway.domain.tenancy.policy import Decision, Limits

_LEVELS: tuple[Literal["safe", "moderate", "dangerous"], ...] = ("safe", "moderate", "dangerous")
LIMITS = tuple(field.name for field in fields(Limits))
_ANY = "any"
_DECISION = click.Choice([decision.value for decision in Decision])


class _PolicyOptions(TypedDict):
    file: str | None
    no_rules: bool
    record: str | None
    no_record: bool
    safe: str | None
    moderate: str | None
    dangerous: str | None


@click.group(cls=Commands)
def policy() -> None:
    """Show and set a tenant's policy: decisions by safety level and rule, and limits."""


@policy.command("show")
@with_tenant
def show_policy(context: AdminContext) -> None:
    """Show a tenant's policy."""
    found = context.admin.get(context.tenant_path("policy"))
    context.show(found, lambda: _describe(found))


@policy.command("set")
@click.option("--safe", type=_DECISION, help="The decision for calls that only read.")
@click.option("--moderate", type=_DECISION, help="The decision for calls that change data.")
@click.option("--dangerous", type=_DECISION, help="The decision for calls that delete data.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", help=f"One of {', '.join(LIMITS)}.")
@click.option(
    "--http-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="An origin that declared `http` handlers may call; may be repeated. No other origin is permitted; `any` "
    "permits all.",
)
@click.option(
    "--rules", "file", metavar="FILE", help="Replace the rules by the rules in FILE (JSON or YAML; - reads stdin)."
)
@click.option("--no-rules", is_flag=True, help="Remove all rules.")
@click.option(
    "--record", metavar="FILE", help="Replace the rules for arguments in the audit trail; FILE as for --rules."
)
@click.option("--no-record", is_flag=True, help="Record no arguments.")
@with_tenant
def set_policy(
    context: AdminContext, limits: tuple[str, ...], origins: tuple[str, ...], **given: Unpack[_PolicyOptions]
) -> None:
    """Change the given parts of a tenant's policy; the others are kept.

    FILE has the member `rules`, or `recorded_arguments` for --record, as `policy show --json` prints it; docs/policy.md
    and docs/audit.md describe them.

    \b
    Example:
      gateway policy set --moderate confirm --dangerous approve
      gateway policy set --limit calls_per_second=10 --limit burst=10
    """
    decisions: JsonObject = {level: given[level] for level in _LEVELS if given[level] is not None}
    changed_limits = parse_limits(limits)
    reach = _origin_fields(origins)
    rules = _rule_fields(given)
    if not decisions and not changed_limits and not reach and not rules:
        raise Failure("nothing to change: give a level, --rules, --record, --limit or --http-origin", ExitCode.USAGE)
    current, tag = context.admin.get_with_tag(context.tenant_path("policy"))
    wanted: JsonObject = {level: current.get(level) for level in _LEVELS}
    wanted |= {**decisions, **reach, **rules, "limits": changed_limits}
    stored = context.admin.send("PUT", context.tenant_path("policy"), wanted, if_match=tag)
    context.show(stored, lambda: _describe(stored))
    if rules.get("rules"):
        for warning in list_warnings(context.admin.send("POST", context.tenant_path("policy", "check"), {})):
            click.echo(f"warning: {warning}", err=True)


@policy.command("check")
@click.argument("file", required=False)
@with_tenant
def check_rules(context: AdminContext, file: str | None) -> None:
    """Show which primitives each rule of FILE (JSON or YAML; - reads stdin), or each stored rule, matches now."""
    body = {} if file is None else _read_rules(file, "rules")
    found = context.admin.send("POST", context.tenant_path("policy", "check"), body)
    context.show(found, lambda: describe_matches(found))


def parse_limits(given: tuple[str, ...]) -> dict[str, float | int]:
    """Parse limits written as NAME=NUMBER.

    Raises:
        Failure: a name is not a limit, or a value is not a number.
    """
    limits: dict[str, float | int] = {}
    for text in given:
        name, equals, raw = text.partition("=")
        if not equals or name not in LIMITS:
            raise Failure(f"--limit {text}: the limits are {', '.join(LIMITS)}, written NAME=NUMBER", ExitCode.USAGE)
        limits[name] = _parse_number(text, raw)
    return limits


def _rule_fields(given: _PolicyOptions) -> JsonObject:
    parts = (("rules", given["file"], given["no_rules"]), ("recorded_arguments", given["record"], given["no_record"]))
    found: JsonObject = {}
    for member, file, is_empty in parts:
        found |= {member: []} if is_empty else {} if file is None else _read_rules(file, member)
    return found


def _read_rules(file: str, member: str) -> JsonObject:
    content = only_one(read_declarations(file)).content
    if content.keys() != {member}:
        raise Failure(f"{file}: must have exactly the member `{member}`", ExitCode.USAGE)
    return content


def _origin_fields(origins: tuple[str, ...]) -> JsonObject:
    if _ANY in origins and len(origins) > 1:
        raise Failure(f"--http-origin {_ANY} excludes other origins", ExitCode.USAGE)
    return {"http_origins": None if _ANY in origins else list(origins)} if origins else {}


def _parse_number(text: str, raw: str) -> float | int:
    try:
        return int(raw) if raw.strip().lstrip("-").isdigit() else float(raw)
    except ValueError:
        raise Failure(f"--limit {text}: {raw!r} is not a number", ExitCode.USAGE) from None


def _describe(found: JsonObject) -> str:
    decisions = [(level, text_at(found, level)) for level in _LEVELS]
    limits = [(name, _describe_limit(found, name)) for name in LIMITS]
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
    stored, effective = text_at(found, "limits", name), text_at(found, "effective", name)
    ceiling = text_at(found, "ceilings", name)
    return f"{stored} (ceiling {ceiling})" if stored == effective else f"{stored}, cut to its ceiling {ceiling}"
