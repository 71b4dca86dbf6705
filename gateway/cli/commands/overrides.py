"""`gateway tool set` and `gateway source overrides`: overrides of imported tools."""

from collections.abc import Mapping
from typing import TypedDict, Unpack

import click

from gateway.cli.arguments import parse_arguments
from gateway.cli.client.admin_context import AdminContext, with_tenant
from gateway.cli.commands.primitives import find_place
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, is_object, pick, text_at, to_object
from gateway.cli.input.options import limit_option
from gateway.cli.output.tables import render_pairs, render_table, shorten
from gateway.domain.tenancy.policy import Safety
from gateway.kinds.primitives import TOOL

_MEMBERS = ("name", "title", "description", "hidden", "enabled", "safety", "annotations", "pinned", "result")
_HINTS = {
    "read-only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open-world": "openWorldHint",
}
_WIDTH = 60
_EXAMPLES = """\b
Of an imported tool, options change its override instead:
  gateway tool set get_pet --title "Find a pet" --rename find_pet
  gateway tool set create_order --safety dangerous --pin channel=agents --unpin region
  gateway tool set list_orders --pointer /items --keep '/*/id' --keep '/*/state'
  gateway tool set delete_pet --hide
  gateway tool set find_pet --default title --default name
  gateway tool set find_pet --reset"""


class SetOptions(TypedDict):
    """The options of `tool set`."""

    rename: str | None
    title: str | None
    description: str | None
    hidden: bool | None
    enabled: bool | None
    safety: str | None
    hints: tuple[str, ...]
    pins: tuple[str, ...]
    unpins: tuple[str, ...]
    pointer: str | None
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    defaults: tuple[str, ...]
    reset: bool


@click.command("set", epilog=_EXAMPLES)
@click.argument("name")
@click.option("--rename", metavar="NEW", help="A new name; the old name keeps working for 30 days.")
@click.option("--title", help="The title, for people.")
@click.option("--description", help="The description, for models.")
@click.option(
    "--hide/--show", "hidden", default=None, help="Hide the tool from the lists and calls of clients, or show it."
)
@click.option("--enable/--disable", "enabled", default=None, help="Enable or disable the tool for all principals.")
@click.option(
    "--safety",
    type=click.Choice([level.value for level in Safety]),
    help="The safety level; it replaces the level of the method.",
)
@click.option("--hint", "hints", multiple=True, metavar="HINT=yes|no", help=f"One of {', '.join(_HINTS)}.")
@click.option(
    "--pin",
    "pins",
    multiple=True,
    metavar="ARGUMENT=VALUE",
    help="Always send this value; callers cannot set the argument.",
)
@click.option("--unpin", "unpins", multiple=True, metavar="ARGUMENT", help="Let callers set the argument again.")
@click.option("--pointer", help="Return only the part of the response at this JSON Pointer.")
@click.option("--keep", multiple=True, metavar="PATH", help="Return only the parts at this path; `*` matches any part.")
@click.option("--drop", multiple=True, metavar="PATH", help="Remove the parts at this path.")
@click.option("--default", "defaults", multiple=True, type=click.Choice(_MEMBERS), help="Restore the document's value.")
@click.option("--reset", is_flag=True, help="Restore all values of the document.")
@with_tenant
def set_tool(context: AdminContext, name: str, **options: Unpack[SetOptions]) -> None:
    """Override properties of the imported tool NAME; imports keep the override.

    A tool of the tenant's own is created or replaced by `gateway tool set FILE`.
    """
    place = find_place(context, TOOL, name)
    found, tag = context.admin.get_with_tag(place)
    if options["reset"]:
        if any(value for member, value in options.items() if member != "reset") or options["hidden"] is not None:
            raise Failure("--reset removes the whole override; give it without other options", ExitCode.USAGE)
        context.admin.send("DELETE", f"{place}/override", if_match=tag)
        context.show({"reset": name}, lambda: f"{name} has no override")
        return
    wanted = _build_fields(options, found)
    if not wanted:
        raise Failure("nothing to set: give an option, such as --title", ExitCode.USAGE)
    saved = context.admin.send("PATCH", place, wanted, if_match=tag)
    context.show(saved, lambda: _describe(to_object(pick(saved, "status", "override")), text_at(saved, "name")))


@click.command("overrides")
@click.argument("name")
@limit_option
@with_tenant
def list_overrides(context: AdminContext, name: str, limit: int | None) -> None:
    """List the overrides of the tools of source NAME, including those whose operation no longer exists."""
    items = list(context.admin.pages(context.tenant_path("sources", name, "overrides"), limit=limit))
    rows = [
        (text_at(item, "operation"), text_at(item, "tool") or "(gone)", shorten(_summary(item), _WIDTH))
        for item in items
    ]
    context.show(items, lambda: render_table(("operation", "tool", "override"), rows))


def _build_fields(options: SetOptions, found: JsonObject) -> JsonObject:
    """Build the fields of the request; hints and pinned arguments are merged with the stored ones."""
    plain: Mapping[str, object] = {
        "name": options["rename"],
        "title": options["title"],
        "description": options["description"],
        "hidden": options["hidden"],
        "enabled": options["enabled"],
        "safety": options["safety"],
    }
    wanted: JsonObject = {name: value for name, value in plain.items() if value is not None}
    if options["hints"]:
        wanted["annotations"] = _stored_member(found, "annotations") | dict(map(_parse_hint, options["hints"]))
    if options["pins"] or options["unpins"]:
        wanted["pinned"] = _merge_pinned(options, found)
    cut = {"pointer": options["pointer"], "keep": list(options["keep"]), "drop": list(options["drop"])}
    if any(cut.values()):
        wanted["result"] = {name: value for name, value in cut.items() if value}
    if twice := [member for member in options["defaults"] if member in wanted]:
        raise Failure(f"--default {twice[0]} cannot be combined with a value for {twice[0]}", ExitCode.USAGE)
    return wanted | dict.fromkeys(options["defaults"])


def _merge_pinned(options: SetOptions, found: JsonObject) -> JsonObject | None:
    stored = _stored_member(found, "pinned")
    if missing := [name for name in options["unpins"] if name not in stored]:
        raise Failure(f"{missing[0]!r} is not pinned", ExitCode.USAGE)
    document = to_object(pick(found, "status", "document")) or found
    schema = pick(document, "definition", "inputSchema")
    left = {name: value for name, value in stored.items() if name not in options["unpins"]}
    return (left | parse_arguments(options["pins"], whole=None, schema=schema)) or None


def _parse_hint(text: str) -> tuple[str, bool]:
    name, _, value = text.partition("=")
    if name not in _HINTS or value not in {"yes", "no"}:
        raise Failure(
            f"{text!r} is not a hint; use HINT=yes or HINT=no, with one of {', '.join(_HINTS)}", ExitCode.USAGE
        )
    return _HINTS[name], value == "yes"


def _stored_member(found: JsonObject, member: str) -> JsonObject:
    return to_object(pick(found, "status", "override", member))


def _describe(override: JsonObject, name: str) -> str:
    """Render the override, or a line if the tool has no override."""
    if not override:
        return f"{name} has no override"
    return render_pairs([("tool", name), *((member, _message_of(override, member)) for member in _MEMBERS)])


def _summary(item: JsonObject) -> str:
    return "; ".join(f"{member}: {message}" for member in _MEMBERS if (message := _message_of(item, member)))


def _message_of(override: JsonObject, member: str) -> str:
    value = override.get(member)
    if is_object(value):
        return ", ".join(f"{name}={message}" for name in value if (message := text_at(value, name)))
    return text_at(override, member)
