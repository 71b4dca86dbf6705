"""Aligned text: tables and name-value lists for terminals and logs."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from gateway.cli.output.printing import visible

_GAP = "  "
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+(Z|[+-]\d\d:\d\d)")


def render_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """Render a table with columns as wide as their widest cell; columns in `numbers` are right-aligned."""
    cells = [[_cell(cell) for cell in row] for row in rows]
    lines = [[title.upper() for title in titles], *cells]
    widths = [max(width_of(line[column]) for line in lines) for column in range(len(titles))]
    right = frozenset(numbers)
    return "\n".join(_join(line, widths, right) for line in lines)


def render_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """Render one name and value per line, with aligned values; empty values are omitted."""
    kept = [(name, _cell(value)) for name, value in pairs if value]
    width = max((width_of(name) for name, _ in kept), default=0)
    return "\n".join(f"{name}{' ' * (width - width_of(name))}{_GAP}{value}" for name, value in kept)


def _cell(text: str) -> str:
    return whole_seconds(clean(text))


def whole_seconds(text: str) -> str:
    """Cut the fractions of seconds off the times in a text for people; JSON keeps them."""
    return _TIME.sub(r"\1\2", text)


def clean(text: str) -> str:
    """Put text on one line: line ends and tabs become spaces, and what could control the terminal becomes visible."""
    return visible(text).replace("\n", " ").replace("\t", " ")


def shorten(text: str, width: int) -> str:
    """Put a string on one line and cut it with an ellipsis if it is wider than `width`; measure each character once."""
    line = " ".join(clean(text).split())
    widths = list(accumulate(_cells(character) for character in line))
    if not widths or widths[-1] <= width:
        return line
    return f"{line[: bisect_right(widths, width - 1)].rstrip()}…"


def width_of(text: str) -> int:
    """Return the width of the text in terminal cells."""
    return sum(_cells(character) for character in text)


def thousands(number: int) -> str:
    """Format a whole number with thousands separators."""
    return f"{number:,}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun: `1 operation`, `1,223 operations`; the default plural adds an `s`."""
    return f"{thousands(number)} {noun if number == 1 else plural or f'{noun}s'}"


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _join(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded: list[str] = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - width_of(cell))
        padded.append(f"{space}{cell}" if column in right else f"{cell}{space}")
    return _GAP.join(padded).rstrip()
