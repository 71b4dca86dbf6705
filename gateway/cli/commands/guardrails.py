"""`gateway guardrail`: checks of a tenant's calls and results."""

from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.input.declared_items import create_all, declared, set_all
from gateway.cli.input.json_fields import JsonObject, number_at, text_at, to_object
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.item_commands import add_delete, add_show
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.tenancy.guardrail_checks import GuardrailCheck
from gateway.domain.tenancy.guardrails import GuardrailAction, GuardrailPhase
from gateway.domain.tools import PrimitiveOrigin

_NOUN = "guardrails"
_Command = TypeVar("_Command", bound=Callable[..., Any])


class GuardrailOptions(TypedDict):
    """The fields of a guardrail, as options."""

    name: str | None
    check: str | None
    phase: tuple[str, ...]
    action: str | None
    position: int | None
    tool: tuple[str, ...]
    source: tuple[str, ...]
    origin: tuple[str, ...]
    pattern: tuple[str, ...]
    max_bytes: int | None
    hook: str | None
    credential: str | None
    timeout_ms: int | None
    fail: str | None


_OPTIONS = (
    click.option("--name", help="The name of the guardrail."),
    click.option("--check", type=click.Choice([one.value for one in GuardrailCheck]), help="The check."),
    click.option(
        "--phase",
        multiple=True,
        type=click.Choice([one.value for one in GuardrailPhase]),
        help="The phase; may be repeated.",
    ),
    click.option(
        "--action", type=click.Choice([one.value for one in GuardrailAction]), help="The action on a finding."
    ),
    click.option(
        "--position", type=click.IntRange(0, 1000), help="The position in the order of guardrails, lowest first (100)."
    ),
    click.option(
        "--tool", multiple=True, metavar="GLOB", help="Only primitives whose name or URI matches this pattern."
    ),
    click.option("--source", multiple=True, metavar="SOURCE", help="Only primitives of this source."),
    click.option(
        "--origin",
        multiple=True,
        type=click.Choice([one.value for one in PrimitiveOrigin]),
        help="Only primitives of this origin.",
    ),
    click.option("--pattern", multiple=True, metavar="NAME", help="Only this pattern of the check; may be repeated."),
    click.option("--max-bytes", type=int, help="The maximum size in bytes, for the check size."),
    click.option("--hook", metavar="URL", help="The URL of the hook, for the check http."),
    click.option("--credential", help="The stored credential that signs the hook's requests."),
    click.option(
        "--timeout-ms", type=click.IntRange(50, 5000), help="Milliseconds that a call waits for the hook (1000)."
    ),
    click.option(
        "--fail", type=click.Choice(["open", "closed"]), help="The outcome when the hook gives no valid response."
    ),
)


def guardrail_options(command: _Command) -> _Command:
    """Add FILE and the fields of one guardrail to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("file", required=False)(command)


@click.group(cls=Commands)
def guardrail() -> None:
    """List, show, declare, switch and delete a tenant's guardrails."""


@guardrail.command("list")
@list_options(_NOUN)
@with_tenant
def list_guardrails(context: AdminContext, wanted: ListArguments) -> None:
    """List a tenant's guardrails, in the order in which they run unless --sort is given."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    if "sort" not in wanted.query:
        items.sort(key=lambda item: (number_at(item, "position"), text_at(item, "name")))
    names = ("position", "name", "check", "phases", "action", "enabled")
    context.show(items, lambda: render_table(names, [[text_at(item, name) for name in names] for item in items]))


@guardrail.command("create")
@guardrail_options
@with_tenant
def create_guardrail(context: AdminContext, file: str | None, **options: Unpack[GuardrailOptions]) -> None:
    """Create every guardrail that FILE declares (JSON or YAML; - reads stdin), or the one that the options describe.

    \b
    Example:
      gateway guardrail create --name secrets --check secrets --phase call --action block
    """
    create_all(context, _NOUN, declared(file, _fields(options)))


@guardrail.command("set")
@guardrail_options
@with_tenant
def set_guardrail(context: AdminContext, file: str | None, **options: Unpack[GuardrailOptions]) -> None:
    """Create or replace every guardrail that FILE declares, or the one that the options describe.

    \b
    Example:
      gateway guardrail set --name injection --check prompt-injection --phase result --action mark --origin live
    """
    set_all(context, _NOUN, declared(file, _fields(options)))


@guardrail.command("update")
@click.argument("name")
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the guardrail.")
@click.option("--position", type=click.IntRange(0, 1000), help="The position in the order of guardrails, lowest first.")
@click.option("--action", type=click.Choice([one.value for one in GuardrailAction]), help="The action on a finding.")
@with_tenant
def update_guardrail(
    context: AdminContext, name: str, enabled: bool | None, position: int | None, action: str | None
) -> None:
    """Enable, disable or reorder a guardrail, or change its action.

    \b
    Example:
      gateway guardrail update secrets --action block
    """
    given: JsonObject = {"enabled": enabled, "position": position, "action": action}
    wanted = {field: value for field, value in given.items() if value is not None}
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, name), wanted)
    context.show(changed, lambda: _describe(changed))


def _describe(found: JsonObject) -> str:
    scope, hook = to_object(found.get("scope")), to_object(found.get("hook"))
    names = ("name", "id", "check", "phases", "action", "position", "origins", "patterns", "max_bytes", "enabled")
    return render_pairs(
        [
            *((name.replace("_", " "), text_at(found, name)) for name in names),
            *((name, text_at(scope, name)) for name in scope if scope[name]),
            *((f"hook {name}", text_at(hook, name)) for name in hook),
        ]
    )


def _fields(options: GuardrailOptions) -> JsonObject:
    given: JsonObject = {**options}
    fields: JsonObject = {
        name: given[name] for name in ("name", "check", "action", "position", "max_bytes") if given[name] is not None
    }
    for member, option in (("phases", "phase"), ("origins", "origin"), ("patterns", "pattern")):
        fields |= {member: given[option]} if given[option] else {}
    scope: JsonObject = {
        member: given[option] for member, option in (("names", "tool"), ("sources", "source")) if given[option]
    }
    hook: JsonObject = {
        member: given[option]
        for member, option in (("url", "hook"), *((name, name) for name in ("credential", "timeout_ms", "fail")))
        if given[option] is not None
    }
    return fields | ({"scope": scope} if scope else {}) | ({"hook": hook} if hook else {})


add_show(guardrail, _NOUN, "Show one guardrail.", describe=_describe)
add_delete(guardrail, _NOUN, "Delete a guardrail.")
