"""`gateway policy`: decisions by safety level, and a tenant's limits."""

from dataclasses import fields
from typing import TypedDict, Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.output.tables import render_pairs
from gateway.domain.tenancy.policy import WORKING, Limits, Safety

_LEVELS = tuple(level.value for level in Safety)
LIMITS = tuple(field.name for field in fields(Limits))
_ANY = "any"
_DECISION = click.Choice([decision.value for decision in WORKING])


class _Decisions(TypedDict):
    safe: str | None
    moderate: str | None
    dangerous: str | None


@click.group(cls=Commands)
def policy() -> None:
    """Show and set a tenant's policy: decisions by safety level, and limits."""


@policy.command("show")
@with_tenant
def show_policy(context: AdminContext) -> None:
    """Show a tenant's policy."""
    found = context.admin.get(context.tenant_path("policy"))
    context.show(found, lambda: _describe(found))


@policy.command("set")
@click.option("--safe", type=_DECISION, help="What a call that only reads needs.")
@click.option("--moderate", type=_DECISION, help="What a call that changes something needs.")
@click.option("--dangerous", type=_DECISION, help="What a call that deletes something needs.")
@click.option("--limit", "limits", multiple=True, metavar="NAME=NUMBER", help=f"One of {', '.join(LIMITS)}.")
@click.option(
    "--http-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="What declared `http` handlers may call, and nothing else; may be given again; `any` for everything.",
)
@with_tenant
def set_policy(
    context: AdminContext, limits: tuple[str, ...], origins: tuple[str, ...], **given: Unpack[_Decisions]
) -> None:
    """Change the given parts of a tenant's policy; the others are kept."""
    decisions = {level: decision for level, decision in given.items() if decision is not None}
    changed_limits = parse_limits(limits)
    reach = _reach(origins)
    if not decisions and not changed_limits and not reach:
        raise Failure("nothing to change: give a level, --limit or --http-origin", ExitCode.USAGE)
    current, tag = context.admin.get_with_tag(context.tenant_path("policy"))
    wanted: JsonObject = {level: current.get(level) for level in _LEVELS}
    wanted |= {**decisions, **reach, "limits": changed_limits}
    stored = context.admin.send("PUT", context.tenant_path("policy"), wanted, if_match=tag)
    context.show(stored, lambda: _describe(stored))


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
        limits[name] = _number(text, raw)
    return limits


def _reach(origins: tuple[str, ...]) -> JsonObject:
    if _ANY in origins and len(origins) > 1:
        raise Failure(f"--http-origin {_ANY} excludes other origins", ExitCode.USAGE)
    return {"http_origins": None if _ANY in origins else list(origins)} if origins else {}


def _number(text: str, raw: str) -> float | int:
    try:
        return int(raw) if raw.strip().lstrip("-").isdigit() else float(raw)
    except ValueError:
        raise Failure(f"--limit {text}: {raw!r} is no number", ExitCode.USAGE) from None


def _describe(found: JsonObject) -> str:
    decisions = [(level, text_at(found, level)) for level in _LEVELS]
    limits = [(name, _describe_limit(found, name)) for name in LIMITS]
    origins = "any" if found.get("http_origins") is None else text_at(found, "http_origins") or "none"
    return render_pairs([*decisions, *limits, ("http origins", origins)])


def _describe_limit(found: JsonObject, name: str) -> str:
    stored, effective = text_at(found, "limits", name), text_at(found, "effective", name)
    ceiling = text_at(found, "ceilings", name)
    return f"{stored} (ceiling {ceiling})" if stored == effective else f"{stored}, cut to its ceiling {ceiling}"
