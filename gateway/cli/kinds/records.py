"""The commands of one kind of record, derived from its declaration: `list` and `show`."""

from collections.abc import Callable

import click

from gateway.cli.click_group import Commands
from gateway.cli.input.json_fields import JsonObject
from gateway.cli.input.list_options import list_options_of
from gateway.cli.item_commands import add_list, add_show
from gateway.cli.object_names import Naming, naming_by_id
from gateway.cli.output.printing import Shown
from gateway.kinds.members import shown
from gateway.kinds.record import AnyRecord


def record_group(
    record: AnyRecord,
    about: str,
    *,
    naming: Naming | None = None,
    describe: Callable[[JsonObject], Shown] | None = None,
) -> click.Group:
    """Build the group with `list` and `show`; `about` is its help. Actions are added to it.

    `describe` returns the text of `show`, if that is not one line for each field.
    """
    group = Commands(record.name, help=about)
    columns = [one.shown_name for one in shown(record.of) if one.is_listed]
    add_list(group, record.plural, f"List {record.about}.", columns, options=list_options_of(record))
    add_show(group, record.plural, f"Show {record.one}.", naming=naming or naming_by_id(record), describe=describe)
    return group
