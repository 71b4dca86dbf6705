"""Aligned text: tables and name-value lists that read well in a terminal and in a log."""

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

_GAP = "  "


def render_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """Columns as wide as their widest cell; those in `numbers` are set to the right."""
    cells = [[clean(cell) for cell in row] for row in rows]
    lines = [[title.upper() for title in titles], *cells]
    widths = [max(width_of(line[column]) for line in lines) for column in range(len(titles))]
    right = frozenset(numbers)
    return "\n".join(_join(line, widths, right) for line in lines)


def render_pairs(pairs: Iterable[tuple[str, str]]) -> str:
    """One name and value on each line, the values below each other; empty values are left out."""
    kept = [(name, clean(value)) for name, value in pairs if value]
    width = max((width_of(name) for name, _ in kept), default=0)
    return "\n".join(f"{name}{' ' * (width - width_of(name))}{_GAP}{value}" for name, value in kept)


def clean(text: str) -> str:
    """The text on one line and without control characters, which could drive the terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def drop_controls(text: str) -> str:
    """The text with its lines and tabs, but nothing else that could drive the terminal."""
    return "".join(sign for sign in text if sign in "\n\t" or unicodedata.category(sign) != "Cc")


def shorten(text: str, width: int) -> str:
    """The text, cut with an ellipsis where it is wider than `width`; each character is measured once."""
    line = " ".join(clean(text).split())
    widths = list(accumulate(_cells(sign) for sign in line))
    if not widths or widths[-1] <= width:
        return line
    return f"{line[: bisect_right(widths, width - 1)].rstrip()}…"


def width_of(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return sum(_cells(sign) for sign in text)


def thousands(number: int) -> str:
    """A whole number with separated thousands."""
    return f"{number:,}"


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: `1 operation`, `1,223 operations`; by default the plural takes an `s`."""
    return f"{thousands(number)} {noun if number == 1 else plural or f'{noun}s'}"


def _cells(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in {"W", "F"} else 1


def _join(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded: list[str] = []
    for column, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        space = " " * (width - width_of(cell))
        padded.append(f"{space}{cell}" if column in right else f"{cell}{space}")
    return _GAP.join(padded).rstrip()
