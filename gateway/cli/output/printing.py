"""Text for the terminal: everything that commands print passes here.

Names, texts and errors can come from a hostile server, upstream or tenant. Characters that control a terminal or
reorder its text are printed as escapes, such as `\\x1b` and `\\u202e`.
"""

import json
import re
from collections.abc import Callable
from typing import Any, Final

import click

_HIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except line ends and tabs
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # invisible signs, and those of direction
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"  # byte order marks, annotations, surrogates, tags
)
"""Characters that a terminal obeys or hides. The joiners U+200C and U+200D stay: Persian and emoji need them."""


_COLORS: Final = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
_COLORED: Final = re.compile("\ue0f0(3[1-6])\ue0f1|\ue0f2")


def show(value: object, text: Callable[[], str], *, as_json: bool) -> None:
    """Print the value as JSON or as text."""
    shown = _as_json(value) if as_json else text()
    if shown:
        echo(shown)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print text and a line end to standard output, or to standard error."""
    click.echo(_COLORED.sub(_as_color, visible(text)), err=err)  # guard: printed-controls


def ask_yes_no(question: str, *, default: bool = False) -> bool:
    """Ask a question on standard error; the answer is yes or no."""
    return click.confirm(visible(question), default=default, err=True)


def prompt(label: str, *, default: str | None, read: Callable[[str], object]) -> Any:
    """Ask for a line on standard error until `read` accepts it; None as `default` makes a line necessary."""

    def read_visibly(typed: str) -> object:
        try:
            return read(typed)
        except click.UsageError as error:
            raise click.UsageError(visible(error.message)) from None

    shown = f"{label} [{default}]" if default else label
    return click.prompt(visible(shown), default=default, show_default=False, value_proc=read_visibly, err=True)


def visible(text: str) -> str:
    """Replace control characters except line ends and tabs, and invisible ones such as bidi overrides, by escapes."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def colored(text: str, color: str) -> str:
    """Mark text with a color, which `echo` turns into escape sequences; no mark can hide text."""
    return f"\ue0f0{_COLORS[color]}\ue0f1{text}\ue0f2"


def _as_color(found: re.Match[str]) -> str:
    return f"\x1b[{found[1] or 0}m"


def _as_json(value: object) -> str:
    """Return JSON that is safe to print: the characters that JSON permits, but `visible` replaces, are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)
