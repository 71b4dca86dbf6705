"""Aligned text: tables and name-value lists for terminals and logs, rendered by Rich.

A table is as wide as the terminal at most; its cells are wrapped. Without a terminal, nothing is wrapped or cut.
Cells are plain text for Rich: it reads no markup, emoji code or escape sequence in them.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gateway.cli.output.limits import MAX_CELL_LENGTH, UNLIMITED_WIDTH
from gateway.cli.output.printing import visible
from gateway.cli.output.terminal import width
from gateway.cli.output.times import show_time

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

_STATE_TITLES = frozenset({"state", "status", "access", "outcome"})
_STATE_STYLES = {
    "green": ("ok", "active", "visible", "approved", "allowed", "attached", "imported", "delivered", "matched"),
    "red": ("failed", "failing", "denied", "revoked", "refused", "error", "broken"),
    "yellow": ("pending", "held", "warning", "expired", "proposal waits", "disabled", "waiting"),
}
"""The states that a table shows in a color. A state of another name has none."""


def render_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> "Text":
    """Render a table that fits the terminal; columns in `numbers` are right-aligned."""
    from rich.table import Table  # noqa: PLC0415  # help prints no table
    from rich.text import Text  # noqa: PLC0415

    right, most = frozenset(numbers), width()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, title in enumerate(titles):
        is_number = place in right
        heading = Text(clean(title).upper())
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=is_number, overflow="fold")
    for row in rows:
        cells = zip(titles, (_cell(text, most) for text in row), strict=True)
        table.add_row(*(Text(text, style=_style_of(title, text)) for title, text in cells))
    return _as_text(table, most)


def render_pairs(pairs: Iterable[tuple[str, str]]) -> "Text":
    """Render one name and value per line, with aligned values; empty values are omitted.

    Values are never wrapped or cut: addresses, ids and command lines are copied from here.
    """
    from rich.table import Table  # noqa: PLC0415  # help prints no table
    from rich.text import Text  # noqa: PLC0415

    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for name, value in pairs:
        if value:
            text = show_time(clean(value), is_exact=True)
            table.add_row(Text(clean(name)), Text(text, style=_style_of(name, text)))
    return _as_text(table, None)


def clean(text: str) -> str:
    """Put text on one line: line ends and tabs become spaces, and what could control the terminal becomes visible."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def shorten(text: str, most: int) -> str:
    """Put a string on one line and cut it with an ellipsis if it is wider than `most` cells."""
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415  # help cuts no text

    line = " ".join(clean(text).split())
    return line if cell_len(line) <= most else f"{set_cell_size(line, most - 1).rstrip()}…"


def thousands(number: int) -> str:
    """Format a whole number with thousands separators."""
    return f"{number:,}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: `1 operation`, `1,223 operations`; the default plural adds an `s`."""
    return f"{thousands(number)} {noun if number == 1 else plural or f'{noun}s'}"


def _cell(text: str, most: int | None) -> str:
    line = show_time(clean(text))
    return line if most is None or len(line) <= MAX_CELL_LENGTH else f"{line[:MAX_CELL_LENGTH]}…"


def _style_of(title: str, value: str) -> str:
    if title not in _STATE_TITLES:
        return ""
    return next((style for style, states in _STATE_STYLES.items() if value in states), "")


def _as_text(table: "Table", most: int | None) -> "Text":
    """Render the lines of a table, without spaces at their ends."""
    from rich.console import Console  # noqa: PLC0415  # help prints no table
    from rich.text import Text  # noqa: PLC0415

    cells = most or UNLIMITED_WIDTH
    console = Console(width=cells, color_system=None, legacy_windows=False)
    lines: list[Text] = []
    for segments in console.render_lines(table, console.options.update(width=cells), pad=False):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)
