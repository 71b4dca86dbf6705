"""The generated module of the command groups of kinds, which help names without an import of declarations."""

import click

from gateway.cli.kinds.groups import GROUPS
from gateway.cli.main import gateway
from gateway.kinds.index import KINDS

_HEAD = "Command groups of kinds without further commands. Written by `python -m tests.deploy.pages`; do not edit."


def kind_groups() -> str:
    """The module: each group that has no line in `gateway.cli.main`, with its location and one sentence of help."""
    lines = [
        f'    "{name}": (\n        "gateway.cli.kinds.index:{kind.name}",\n'
        f'        "Manage a tenant\'s {kind.plural_words}, each {kind.about.partition(";")[0]}.",\n    ),\n'
        for kind in KINDS
        if not _is_by_hand(name := kind.name.replace("_", "-"))
    ]
    return f'"""{_HEAD}"""\n\nGROUPS = {{\n{"".join(lines)}}}\n'


def _is_by_hand(name: str) -> bool:
    """True if `gateway.cli.main` has a line for the group, or for one that has it, such as `audit` with `sink`."""
    context = click.Context(gateway)
    by_hand = set(gateway.list_commands(context)) - GROUPS.keys()
    outer, _, inner = name.partition("-")
    group = gateway.get_command(context, outer) if outer in by_hand else None
    return name in by_hand or (isinstance(group, click.Group) and inner in group.commands)
