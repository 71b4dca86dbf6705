"""Durations and times of options: `90d`, `15m` or `1h30m`, `P90D`, and ISO 8601 times.

One parser reads all of them, and `write_duration` writes what it reads.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import click

_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WRITTEN: Final = ("d", "h", "m", "s")
_SHORT: Final = re.compile("".join(rf"(?:(\d{{1,10}}){unit})?" for unit in _UNITS), re.ASCII)
_ISO: Final = re.compile(
    r"P(?:(\d{1,10})W)?(?:(\d{1,10})D)?(?:T(?:(\d{1,10})H)?(?:(\d{1,10})M)?(?:(\d{1,10})S)?)?", re.ASCII
)
_DAY_S: Final = _UNITS["d"]


def parse_duration(text: str) -> int | None:
    """Return the seconds of a duration such as `90d`, `1h30m` or `PT15M`; None for any other text."""
    found = _SHORT.fullmatch(text) or _ISO.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    return sum(int(number or 0) * size for number, size in zip(found.groups(), _UNITS.values(), strict=True))


def write_duration(seconds: int) -> str:
    """Write a duration with the largest unit that gives a whole number, such as `36h`."""
    unit = next((unit for unit in _WRITTEN if seconds and seconds % _UNITS[unit] == 0), "s")
    return f"{seconds // _UNITS[unit]}{unit}"


class DurationType(click.ParamType[int]):
    """A duration such as `90s`, `30m`, `24h`, `7d` or `PT15M`, in seconds.

    A number without a unit is refused, unless the option took plain seconds before it took units.
    """

    name = "duration"

    def __init__(self, *, plain: str = "") -> None:
        self._plain = plain

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number of seconds; any other format is a usage error."""
        text = str(value)
        seconds = parse_duration(f"{text}{self._plain}" if text.isdecimal() else text)
        if seconds is None:
            self.fail("must be a number with s, m, h or d, such as 24h", param, ctx)
        return seconds


def write_milliseconds(number: int) -> str:
    """Write a duration in milliseconds, as `2s` or `500ms`."""
    return write_duration(number // 1000) if number % 1000 == 0 else f"{number}ms"


class MillisecondsType(click.ParamType[Any]):
    """A duration such as `500ms` or `2s`, or a number of milliseconds, within bounds."""

    name = "duration"

    def __init__(self, least: int, most: int) -> None:
        self._range = click.IntRange(least, most)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of milliseconds."""
        text = str(value).removesuffix("ms")
        seconds = None if text.isdecimal() else parse_duration(text)
        found: int = self._range.convert(cast("int", text) if seconds is None else seconds * 1000, param, ctx)
        return found


class DaysType(click.ParamType[Any]):
    """A duration of whole days such as 90d, or a number of days."""

    name = "days"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of days."""
        text = str(value)
        seconds = parse_duration(f"{text}d" if text.isdecimal() else text)
        if seconds is None or seconds % _DAY_S:
            self.fail("must be a number of days such as 90d", param, ctx)
        return seconds // _DAY_S


class TimeType(click.ParamType[Any]):
    """A time: ISO 8601, in UTC if it names no offset, or a duration before now, or after now if it is a future one."""

    name = "time"

    def __init__(self, *, is_future: bool = False) -> None:
        self._sign = 1 if is_future else -1

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the time with its offset; any other format is a usage error."""
        if isinstance(value, datetime):
            return value
        text = str(value)
        seconds = parse_duration(text)
        try:
            if seconds is not None:
                return datetime.now(UTC).replace(microsecond=0) + self._sign * timedelta(seconds=seconds)
            found = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            self.fail("must be a duration such as 90d, or a time such as 2030-01-31 or 2030-01-31T12:00Z", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=UTC)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """The form of a value."""
        return "TIME|DURATION"
