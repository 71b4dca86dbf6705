"""The commands that every kind of item of a tenant has: `list`, `show` and `delete`."""

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import click

from gateway.cli.bulk import ObjectAction, Objects, act_on_each, several_objects
from gateway.cli.click_group import Commands
from gateway.cli.client.admin_api import path_of
from gateway.cli.client.admin_context import AdminContext, with_admin, with_tenant
from gateway.cli.input.json_fields import JsonObject, text_at
from gateway.cli.input.list_options import ListArguments, ListOption
from gateway.cli.input.options import yes_option
from gateway.cli.input.times import write_duration
from gateway.cli.object_names import BY_NAME, Naming
from gateway.cli.output.printing import Shown
from gateway.cli.output.tables import render_pairs, render_table

_SECONDS = "_s"
"""The suffix of members with a number of seconds."""


def add_list(group: click.Group, noun: str, about: str, columns: Sequence[str], *, options: ListOption) -> None:
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
    """Add `show`, which prints one item or several: by `describe`, or these fields, or all."""
    action = ObjectAction(
        send=lambda context, item: context.admin.get(context.tenant_path(noun, item)),
        describe=lambda _, found: describe(found) if describe else render_fields(found, *fields),
        verb="show",
        separator="\n\n",
        is_reading=True,
    )

    @group.command("show", help=about)
    @several_objects(_listed(naming, noun), has_all=False)
    @with_tenant
    def show_item(context: AdminContext, objects: Objects) -> None:
        act_on_each(context, objects, action, noun=str(group.name), is_sure=True)


def add_action(
    group: click.Group,
    verb: str,
    about: str,
    *,
    naming: Naming = BY_NAME,
    result: str = "",
    describe: Callable[[str, JsonObject], Shown] | None = None,
) -> None:
    """Add a command for the action `verb` of items, which prints each.

    With a result, such as `revoked`, it asks first on a terminal, and prints the result.
    """

    def shown(name: str, done: JsonObject) -> Shown:
        return describe(name, done) if describe else render_fields(done)

    action = ObjectAction(
        send=lambda context, item: context.admin.send("POST", naming.path(context, item, verb)),
        describe=lambda name, done: f"{result} {name}" if result else shown(name, done),
        verb=verb,
        is_destructive=bool(result),
        separator="\n" if result else "\n\n",
    )
    example = example_of(group, f"{verb} {naming.example}")

    @group.command(verb, help=f"{about}\n\n{example}")
    @several_objects(naming)
    @yes_option
    @with_tenant
    def act(context: AdminContext, objects: Objects, yes: bool) -> None:
        is_program = result != "" and not objects.is_all and not sys.stdin.isatty()
        act_on_each(context, objects, action, noun=str(group.name), is_sure=yes or is_program)


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

    def send(context: AdminContext, item: str) -> JsonObject:
        context.admin.send("DELETE", path_of(noun, item) if naming.is_operators else context.tenant_path(noun, item))
        return {}

    action = ObjectAction(
        send=send,
        describe=lambda name, _: f"{result} {name}",
        verb=verb,
        loss=loss,
        is_destructive=True,
        names_results=result,
    )
    example = example_of(group, f"{verb} {naming.example}")

    @group.command(verb, help=f"{about}\n\n{example}")
    @several_objects(_listed(naming, noun))
    @yes_option
    @(with_admin if naming.is_operators else with_tenant)
    def delete_item(context: AdminContext, objects: Objects, yes: bool) -> None:
        act_on_each(context, objects, action, noun=str(group.name), is_sure=yes)


def example_of(group: click.Group, line: str) -> str:
    """The paragraph of the help with an example of a command of a group."""
    path = group.path if isinstance(group, Commands) and group.path else group.name
    return f"\b\nExample:\n  gateway {path} {line}"


def _listed(naming: Naming, noun: str) -> Naming:
    """The naming with the list of its group, if it names none."""
    return naming if naming.plural else replace(naming, plural=noun, words=noun.removesuffix("s").replace("-", " "))


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
