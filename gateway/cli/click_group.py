"""A click group that says of each of its commands what it does, in a whole sentence."""

import click

_LONGEST = 200
"""Characters of a sentence; more than any has, so that none is cut."""


class Commands(click.Group):
    """Commands by name; help lists them with the whole first sentence of each."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands as they stand here, without asking for the real ones."""
        rows = [(name, self.commands[name].get_short_help_str(limit=_LONGEST)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
