"""Pure arithmetic of a benchmark: percentiles, medians with their range, and tables as Markdown."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` per cent of all values do not exceed (nearest rank)."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Format the median, with the range in parentheses if the values differ."""
    if not values:
        return "–"
    middle, low, high = (f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def ratio(value: Sequence[float], limit: Sequence[float]) -> str:
    """Format the ratio of the value's median to the limit's median."""
    if not value or not limit or statistics.median(limit) == 0:
        return "–"
    return f"{statistics.median(value) / statistics.median(limit):.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The table of one part."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def render(self) -> str:
        """Render as Markdown: a heading, the table and its notes."""
        lines = [_line(self.columns), "|---" + "|---:" * (len(self.columns) - 1) + "|", *map(_line, self.rows)]
        parts = [f"## {self.title}", "\n".join(lines)]
        if self.notes:
            parts.append("\n".join(f"- {note}" for note in self.notes))
        return "\n\n".join(parts)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;').replace(chr(10), ' ') for cell in cells)} |"
