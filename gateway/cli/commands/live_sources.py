"""`gateway live-source`: editors, MCP servers and programs whose primitives exist while they are attached."""

import json
from typing import Unpack

import click

from gateway.cli.click_group import Commands
from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.declared_items import create_all, declared, set_all
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_object, to_objects
from gateway.cli.input.list_options import ListArguments, list_options
from gateway.cli.input.live_options import LiveOptions, live_fields, live_options
from gateway.cli.input.options import limit_option, yes_option
from gateway.cli.item_commands import add_delete, add_show
from gateway.cli.output.printing import echo
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.json_access import tokens_of
from gateway.domain.primitives import Family

_NOUN = "live-sources"
name_option = click.option("--name", help="The name, unique among the tenant's sources.")


@click.group("live-source", cls=Commands)
def live_source() -> None:
    """Declare, review and attach editors, MCP servers and programs."""


@live_source.command("list")
@list_options(_NOUN)
@with_tenant
def list_live_sources(context: AdminContext, wanted: ListArguments) -> None:
    """List a tenant's live sources, with the state of their attachments."""
    items = list(context.admin.pages(context.tenant_path(_NOUN), limit=wanted.limit, query=wanted.query))
    titles = ("name", "kind", "state", "tools", "resources", "prompts", "held", "fault")
    context.show(items, lambda: render_table(titles, [_row(item) for item in items], numbers=(3, 4, 5, 6)))


@live_source.command("create")
@click.argument("file", required=False)
@name_option
@live_options
@with_tenant
def create_live_source(
    context: AdminContext, file: str | None, name: str | None, **options: Unpack[LiveOptions]
) -> None:
    """Create every live source that FILE declares (JSON or YAML; - reads stdin), or the one that the options describe.

    \b
    Example:
      gateway live-source create --name wiki --mcp https://wiki.example/mcp \\
        --prefix wiki --exclude 'admin_*' --safety search=safe
    """
    create_all(context, _NOUN, declared(file, _named(name, live_fields(options))))


@live_source.command("set")
@click.argument("file", required=False)
@name_option
@live_options
@with_tenant
def set_live_source(context: AdminContext, file: str | None, name: str | None, **options: Unpack[LiveOptions]) -> None:
    """Create or replace every live source that FILE declares, or the one that the options describe.

    \b
    Example:
      gateway live-source set --name laptop --agent --prefix pc
    """
    set_all(context, _NOUN, declared(file, _named(name, live_fields(options))))


@live_source.command("update")
@click.argument("name")
@live_options
@with_tenant
def update_live_source(context: AdminContext, name: str, **options: Unpack[LiveOptions]) -> None:
    """Change the given settings, and reattach the live source; other settings keep their value.

    \b
    Example:
      gateway live-source update tickets --timeout 30s
    """
    fields = live_fields(options)
    fields.pop("kind", None)
    if not fields:
        raise Failure("nothing to change: give an option", ExitCode.USAGE)
    changed = context.admin.send("PATCH", context.tenant_path(_NOUN, name), fields)
    context.show(changed, lambda: _describe(changed))


@live_source.command("accept")
@click.argument("name")
@click.argument("primitives", nargs=-1, metavar="[PRIMITIVE]...")
@yes_option
@with_tenant
def accept_definitions(context: AdminContext, name: str, primitives: tuple[str, ...], yes: bool) -> None:
    """Show the held definitions of NAME, or only those of each PRIMITIVE, and accept them after confirmation.

    Only the shown definitions are accepted; one that has changed since is refused.

    \b
    Example:
      gateway live-source accept tickets create_ticket
    """
    path = context.tenant_path(_NOUN, name)
    every = context.admin.pages(f"{path}/primitives", query={"state": "held"})
    held = [one for one in every if not primitives or text_at(one, "name") in primitives]
    if not held:
        raise Failure("no such definition is held", ExitCode.NOT_FOUND)
    echo("\n\n".join(_describe_held(one) for one in held), err=True)
    confirm(f"Accept {len(held)} of {name}?", is_sure=yes)
    names = list(primitives) or [text_at(one, "name") for one in held]
    digests = [text_at(one, "digest") for one in held]
    response = context.admin.send("POST", f"{path}/accept", {"names": names, "digests": digests})
    context.show(response, lambda: f"accepted {len(held)} of {name}")


@live_source.command("reattach")
@click.argument("name")
@with_tenant
def reattach_live_source(context: AdminContext, name: str) -> None:
    """Reattach a live source now, before the next scheduled attempt."""
    found = context.admin.send("POST", context.tenant_path(_NOUN, name, "reattach"))
    context.show(found, lambda: _describe(found))


@live_source.command("primitives")
@click.argument("name")
@click.option("--family", type=click.Choice(list(Family)), help="Only primitives of this family.")
@click.option(
    "--state", type=click.Choice(["visible", "held", "hidden", "absent"]), help="Only primitives in this state."
)
@limit_option
@with_tenant
def list_live_primitives(
    context: AdminContext, name: str, family: str | None, state: str | None, limit: int | None
) -> None:
    """List the primitives of a live source in every state."""
    path = context.tenant_path(_NOUN, name, "primitives")
    query = {key: value for key, value in (("family", family), ("state", state)) if value}
    items = list(context.admin.pages(path, limit=limit, query=query))
    names = ("name", "family", "state", "safety", "remote", "hidden_by")
    titles = ("name", "family", "state", "safety", "remote name", "hidden by")
    context.show(items, lambda: render_table(titles, [[text_at(item, key) for key in names] for item in items]))


def _named(name: str | None, fields: JsonObject) -> JsonObject:
    return fields if name is None else {"name": name, **fields}


def _row(item: JsonObject) -> list[str]:
    counts = [text_at(item, "primitives", name) for name in ("tools", "resources", "prompts", "held")]
    state = text_at(item, "status", "state") if item.get("enabled") else "disabled"
    return [text_at(item, "name"), text_at(item, "kind"), state, *counts, text_at(item, "status", "fault")]


def _describe(found: JsonObject) -> str:
    declared = (
        "name",
        "id",
        "kind",
        "prefix",
        "credential",
        "caller_credential",
        "include",
        "exclude",
        "accepts_changes",
        "expose",
        "enabled",
        "sessions",
    )
    status = ("state", "title", "replica", "since", "fault", "failures", "retry_at")
    settings, levels = to_object(found.get("settings")), to_object(found.get("safety"))
    pairs = [
        *((name.replace("_", " "), text_at(found, name)) for name in declared),
        *((name.removesuffix("_s"), _compact(value)) for name, value in settings.items()),
        *(("safety", f"{name} {as_text(level)}") for name, level in levels.items()),
        *((name.removesuffix("_at"), text_at(found, "status", name)) for name in status),
        *((name, text_at(found, "primitives", name)) for name in to_object(found.get("primitives"))),
        *(("notice", as_text(notice)) for notice in to_list(pick(found, "status", "notices"))),
        *(("held", f"{text_at(one, 'family')} {text_at(one, 'name')}") for one in to_objects(found.get("held"))),
        *(("hidden", f"{text_at(one, 'family')} {text_at(one, 'name')}") for one in to_objects(found.get("hidden"))),
        *(
            ("finding", f"{text_at(one, 'family')} {text_at(one, 'name')}: {finding}")
            for one in to_objects(found.get("suspicious"))
            for finding in _findings(one)
        ),
    ]
    return render_pairs(pairs)


def _describe_held(one: JsonObject) -> str:
    """Render a held definition: the members that differ from the accepted one, or all members of a new one."""
    pairs = [(name, text_at(one, name)) for name in ("name", "family", "remote")]
    pairs += [("finding", finding) for finding in _findings(one)]
    if pick(one, "accepted") is None:
        return render_pairs([*pairs, ("new", _compact(one.get("definition")))])
    for pointer in to_list(one.get("changed")):
        steps = tokens_of(as_text(pointer))
        pairs += [
            (f"{as_text(pointer)} was", _compact(pick(one, "accepted", *steps))),
            (f"{as_text(pointer)} is", _compact(pick(one, "definition", *steps))),
        ]
    return render_pairs(pairs)


def _findings(one: JsonObject) -> list[str]:
    """Render the suspicious texts of a definition."""
    found = to_objects(one.get("findings"))
    return [f"{text_at(each, 'kind')} at {text_at(each, 'pointer')}: {text_at(each, 'excerpt')}" for each in found]


def _compact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


add_show(live_source, _NOUN, "Show a live source with its attachment and the held definitions.", describe=_describe)
add_delete(live_source, _NOUN, "Delete a live source with its primitives and their accepted definitions.")
