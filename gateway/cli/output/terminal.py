"""Facts about the terminal: its width and whether it shows colors; a pipe or a file has neither."""

import os
import shutil
import sys

from gateway.cli.output.limits import MIN_WIDTH


def is_terminal() -> bool:
    """True if standard output is a terminal, whose reader is a person."""
    return sys.stdout.isatty()


def width() -> int | None:
    """The cells of a line of standard output; None without a terminal, because a pipe takes lines of any length."""
    return max(MIN_WIDTH, shutil.get_terminal_size().columns) if is_terminal() else None


def has_colors(*, err: bool = False) -> bool:
    """True if a stream shows colors.

    `NO_COLOR` (https://no-color.org) precedes `FORCE_COLOR` and `CLICOLOR_FORCE`, which precede the terminal's own
    properties.
    """
    variables = os.environ
    if variables.get("NO_COLOR"):
        return False
    if any(variables.get(name, "0") not in {"", "0", "false"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    if variables.get("TERM") == "dumb" or variables.get("CLICOLOR") == "0":
        return False
    return (sys.stderr if err else sys.stdout).isatty()
