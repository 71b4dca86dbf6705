"""The commands that every kind of item of a tenant has: `list`, `show` and `delete`."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import click

from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, confirm, confirm_at_terminal, with_admin, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, ListOption
from gateway.cli.input.options import yes_option
from gateway.cli.input.times import write_duration
from gateway.cli.output.printing import Shown
from gateway.cli.output.tables import render_pairs, render_table

_SECONDS = "_s"
"""The suffix of members with a number of seconds."""


def _as_given(context: AdminContext, name: str) -> str:
    del context
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """The placeholder for an item on the command line, and the function that returns the segment of its path."""

    metavar: str
    find: Callable[[AdminContext, str], str] = _as_given
    is_operators: bool = False
    """True if the items belong to no tenant."""


BY_NAME, BY_ID = Naming(metavar="NAME"), Naming(metavar="ID")


def add_list(group: click.Group, noun: str, about: str, columns: Sequence[str], options: ListOption) -> None:
    """Add `list`, which prints these fields of each item as a table."""

    @group.command("list", help=about)
    @options
    @with_tenant
    def list_items(context: AdminContext, wanted: ListArguments) -> None:
        items = list(context.admin.pages(context.tenant_path(noun), limit=wanted.limit, query=wanted.query))
        context.show(items, lambda: render_items(items, columns))


def add_show(
    group: click.Group,
    noun: str,
    about: str,
    *,
    describe: Callable[[JsonObject], Shown] | None = None,
    fields: Sequence[str] = (),
    naming: Naming = BY_NAME,
) -> None:
    """Add `show`, which prints one item: by `describe`, or these fields, or all."""

    @group.command("show", help=about)
    @click.argument("name", metavar=naming.metavar)
    @with_tenant
    def show_item(context: AdminContext, name: str) -> None:
        found = context.admin.get(context.tenant_path(noun, naming.find(context, name)))
        context.show(found, lambda: describe(found) if describe else render_fields(found, *fields))


def add_action(
    group: click.Group, noun: str, verb: str, about: str, *, naming: Naming = BY_NAME, result: str = ""
) -> None:
    """Add a command for the action `verb` of one item, which prints the item.

    With a result, such as `revoked`, it asks first on a terminal, and prints the result.
    """

    def act(context: AdminContext, name: str, *, yes: bool = True) -> None:
        place = context.tenant_path(noun, naming.find(context, name), verb)
        confirm_at_terminal(f"{verb.capitalize()} {group.name} {name}?", is_sure=yes)
        done = context.admin.send("POST", place)
        context.show(done, lambda: f"{result} {name}" if result else render_fields(done))

    command = yes_option(with_tenant(act)) if result else with_tenant(act)
    group.command(verb, help=about)(click.argument("name", metavar=naming.metavar)(command))


def add_delete(
    group: click.Group,
    noun: str,
    about: str,
    *,
    naming: Naming = BY_NAME,
    verb: str = "delete",
    loss: str = "",
) -> None:
    """Add `delete`, or the verb for it, which asks first; `loss` names what ends with the item (` with its tools`)."""
    result = f"{verb.removesuffix('e')}ed"

    @group.command(verb, help=about)
    @click.argument("name", metavar=naming.metavar)
    @yes_option
    @(with_admin if naming.is_operators else with_tenant)
    def delete_item(context: AdminContext, name: str, yes: bool) -> None:
        item = naming.find(context, name)
        place = path_of(noun, item) if naming.is_operators else context.tenant_path(noun, item)
        confirm(f"{verb.capitalize()} {group.name} {name}{loss}?", is_sure=yes)
        context.admin.send("DELETE", place)
        context.show({result: name}, lambda: f"{result} {name}")


def render_items(items: Sequence[JsonObject], columns: Sequence[str]) -> Shown:
    """Render these fields of items as a table."""
    return render_table(
        [_title_of(name, columns) for name in columns], [[text_at(item, name) for name in columns] for item in items]
    )


def render_fields(found: JsonObject, *names: str) -> Shown:
    """Render these fields of an item, or all; null and empty fields are omitted."""
    return render_pairs(pair_of(found, name, names) for name in names or found)


def pair_of(found: JsonObject, name: str, beside: Collection[str] = ()) -> tuple[str, str]:
    """The title and the text of a field for people: a number of seconds is a duration."""
    seconds = found.get(name)
    if name.endswith(_SECONDS) and isinstance(seconds, int):
        return _title_of(name.removesuffix(_SECONDS), beside), write_duration(seconds)
    return _title_of(name, beside), text_at(found, name)


def _title_of(name: str, beside: Collection[str]) -> str:
    """The name of a field for people: a time is named by its event, unless a field beside it has that name."""
    event = name.removesuffix("_at")
    return (name if event in beside else event).replace("_", " ")
