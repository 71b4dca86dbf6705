"""The command groups of kinds without further commands, by the name of the kind: `gateway.cli.kinds.index:profile`."""

import click

from gateway.cli.kinds.commands import KindCommands
from gateway.kinds.index import KINDS


def __getattr__(name: str) -> click.Group:
    """Build the group of the kind with this name; `gateway.cli.main` names it, so that help imports no declaration."""
    kind = next((kind for kind in KINDS if kind.name == name), None)
    if kind is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return KindCommands(kind=kind).group()
