"""`gateway live-source`: editors, MCP servers and programs whose primitives exist while they are attached."""

import json

import click

from gateway.cli.client.admin_context import AdminContext, confirm, with_tenant
from gateway.cli.exit_codes import ExitCode
from gateway.cli.failures import Failure
from gateway.cli.input.json_fields import JsonObject, as_text, pick, text_at, to_list, to_objects
from gateway.cli.input.live_options import add_live_options, live_fields, write_live_options
from gateway.cli.input.options import limit_option, yes_option
from gateway.cli.item_commands import add_action
from gateway.cli.kinds.commands import KindCommands
from gateway.cli.kinds.options import SpecialOptions
from gateway.cli.kinds.output import render_object
from gateway.cli.kinds.places import naming_of
from gateway.cli.object_names import object_argument
from gateway.cli.output.printing import Shown, echo, join
from gateway.cli.output.tables import render_pairs, render_table
from gateway.domain.json_access import tokens_of
from gateway.domain.primitives import Family
from gateway.kinds.sources import LIVE_SOURCE

_NOUN = "live-sources"


live_source = KindCommands(
    kind=LIVE_SOURCE,
    loss=" with its primitives and their accepted definitions",
    special=SpecialOptions(add=add_live_options, fields=live_fields, write=write_live_options),
).group()


@live_source.command("accept")
@object_argument(naming_of(LIVE_SOURCE))
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
    echo(join((_describe_held(one) for one in held), "\n\n"), err=True)
    confirm(f"Accept {len(held)} of {name}?", is_sure=yes)
    names = list(primitives) or [text_at(one, "name") for one in held]
    digests = [text_at(one, "digest") for one in held]
    response = context.admin.send("POST", f"{path}/accept", {"names": names, "digests": digests})
    context.show(response, lambda: f"accepted {len(held)} of {name}")


add_action(
    live_source,
    "reattach",
    "Reattach live sources now, before the next scheduled attempt.",
    naming=naming_of(LIVE_SOURCE),
    describe=lambda _, found: render_object(LIVE_SOURCE, found),
)


@live_source.command("primitives")
@object_argument(naming_of(LIVE_SOURCE))
@click.option("--family", type=click.Choice(list(Family)), help="Only primitives of this family.")
@click.option(
    "--state", type=click.Choice(["visible", "held", "hidden", "absent"]), help="Only primitives in this state."
)
@limit_option
@with_tenant
def list_live_primitives(
    context: AdminContext, name: str, family: str | None, state: str | None, *, limit: int | None
) -> None:
    """List the primitives of a live source in every state."""
    path = context.tenant_path(_NOUN, name, "primitives")
    query = {key: value for key, value in (("family", family), ("state", state)) if value}
    items = list(context.admin.pages(path, limit=limit, query=query))
    names = ("name", "family", "state", "safety", "remote", "hidden_by")
    titles = ("name", "family", "state", "safety", "remote name", "hidden by")
    context.show(items, lambda: render_table(titles, [[text_at(item, key) for key in names] for item in items]))


def _describe_held(one: JsonObject) -> Shown:
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
