"""Text for the terminal: everything that commands print passes here.

Names, texts and errors can come from a hostile server, upstream or tenant. Characters that control a terminal or
reorder its text are printed as escapes, such as `\\x1b` and `\\u202e`. A color is a style of a Rich text beside its
characters, so no character of a text can be one.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from gateway.cli.output.terminal import has_colors

if TYPE_CHECKING:
    from rich.text import Text

Shown: TypeAlias = "str | Text"
"""Output of a command: plain text, or text with colors."""

_HIDDEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except line ends and tabs
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # invisible signs, and those of direction
    r"\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"  # byte order marks, annotations, surrogates, tags
)
"""Characters that a terminal obeys or hides. The joiners U+200C and U+200D stay: Persian and emoji need them."""


def show(value: object, text: Callable[[], Shown], *, as_json: bool) -> None:
    """Print the value as JSON or as text."""
    shown = _as_json(value) if as_json else text()
    if shown:
        echo(shown)


def echo(text: Shown = "", *, err: bool = False) -> None:
    """Print text and a line end to standard output, or to standard error."""
    if isinstance(text, str) or not has_colors(err=err):
        click.echo(visible(str(text)), err=err)  # guard: printed-controls
    else:
        click.echo(_with_colors(text), err=err, color=True)


def join(parts: Iterable[Shown], separator: str = "\n") -> Shown:
    """Join texts; the colors of each stay."""
    found = list(parts)
    plain = [part for part in found if isinstance(part, str)]
    if len(plain) == len(found):
        return separator.join(plain)
    from rich.text import Text  # noqa: PLC0415  # a command without colors needs no Rich

    return Text(separator).join(Text(visible(part)) if isinstance(part, str) else part for part in found)


def colored(text: str, color: str) -> "Text":
    """Give a text a color, which a terminal shows."""
    from rich.text import Text  # noqa: PLC0415  # a command without colors needs no Rich

    return Text(visible(text), style=color)


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


def prompt_secret(label: str) -> str:
    """Ask for a secret on standard error; it is not shown while it is typed."""
    secret: str = click.prompt(visible(label), hide_input=True, err=True)
    return secret


def visible(text: str) -> str:
    """Replace control characters except line ends and tabs, and invisible ones such as bidi overrides, by escapes."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text.replace("\r\n", "\n"))


def _with_colors(text: "Text") -> str:
    """Write the styles of a text as escape sequences; those that its characters contain become visible."""
    from rich.color import ColorSystem  # noqa: PLC0415  # a command without colors needs no Rich
    from rich.console import Console  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    shown: list[str] = []
    for segment in Text.assemble(text).render(Console(color_system="standard", legacy_windows=False)):
        line = visible(segment.text)  # guard: colored-controls
        shown.append(segment.style.render(line, color_system=ColorSystem.STANDARD) if segment.style else line)
    return "".join(shown)


def _as_json(value: object) -> str:
    """Return JSON that is safe to print: the characters that JSON permits, but `visible` replaces, are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)
