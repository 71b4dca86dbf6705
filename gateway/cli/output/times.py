"""Times for people: relative to now on a terminal, ISO 8601 elsewhere."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.cli.output.limits import NOW_S
from gateway.cli.output.terminal import is_terminal

_FRACTION: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+(Z|[+-]\d\d:\d\d)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)")
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def show_time(text: str, *, is_exact: bool = False) -> str:
    """Show a time relative to now on a terminal, such as `3 min ago`; any other text keeps its content.

    Elsewhere, the fractions of seconds are cut off. With `is_exact`, the time follows its distance.
    """
    short = whole_seconds(text)
    if not is_terminal() or not _TIME.fullmatch(text):
        return short
    try:
        relative = describe_distance(datetime.fromisoformat(text) - datetime.now(UTC))
    except (ValueError, OverflowError):
        return short
    return f"{relative} ({short})" if is_exact else relative


def describe_distance(distance: timedelta) -> str:
    """Describe a distance from now in its largest unit: `3 min ago`, `in 2 h`, `now`."""
    seconds = distance.total_seconds()
    size, unit = next(((size, unit) for size, unit in _UNITS if abs(seconds) >= size), (1, "s"))
    if abs(seconds) < NOW_S:
        return "now"
    number = int(abs(seconds) // size)
    return f"in {number} {unit}" if seconds > 0 else f"{number} {unit} ago"


def whole_seconds(text: str) -> str:
    """Cut the fractions of seconds off the times in a text for people; JSON keeps them."""
    return _FRACTION.sub(r"\1\2", text)
