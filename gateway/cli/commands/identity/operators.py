"""`gateway operator`: the operators of the installation by name."""

import click

from gateway.cli.click_group import Commands
from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.operators import OPERATOR_GRANT, OPERATOR_KEY


@click.group(cls=Commands)
def operator() -> None:
    """Manage the operators of the installation: named keys, and people and workloads by grants."""


operator.add_command(
    KindCommands(
        kind=OPERATOR_KEY,
        name="key",
        path="operator key",
        about="List, show, create, set, change, rotate and delete the keys of operators; a deleted key is refused.",
    ).group()
)
operator.add_command(KindCommands(kind=OPERATOR_GRANT, name="grant", path="operator grant").group())
