"""A click group whose help lists each command with a complete sentence."""

import click

_LONGEST = 200
"""Maximum characters of a sentence in the list. No command has a longer sentence, so none is cut."""


class Commands(click.Group):
    """Commands by name; help lists each with its complete first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the placeholders registered here, without importing the real commands."""
        rows = [(name, self.commands[name].get_short_help_str(limit=_LONGEST)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
