"""Durations and times of options: one notation, read by one parser."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click
import pytest

from gateway.cli.input.times import DaysType, TimeType, parse_duration, write_duration
from gateway.cli.main import gateway


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90d", 90 * 86_400),
        ("15m", 900),
        ("1h30m", 5_400),
        ("2w", 14 * 86_400),
        ("0s", 0),
        ("P90D", 90 * 86_400),
        ("PT15M", 900),
        ("P1DT12H", 129_600),
    ],
)
def test_a_duration_has_two_forms(text: str, seconds: int) -> None:
    """Ours: units as in `90d`, and the durations of ISO 8601 (CLI-2)."""
    assert parse_duration(text) == seconds
    assert parse_duration(write_duration(seconds)) == seconds


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "90", "d", "1m1h", "1.5h", "-1d", "1 h", "٣d", "9" * 11 + "d", "1h\n", "90D", "1y"]
)
def test_another_text_is_no_duration(text: str) -> None:
    """Ours: a duration has one reading; a number of any length costs nothing (CLI-2)."""
    assert parse_duration(text) is None


def test_a_time_is_absolute_or_relative() -> None:
    """Ours: a time of a search is before now, that of an expiry after now; UTC is the default (CLI-2)."""
    past, future, now = TimeType(), TimeType(is_future=True), datetime.now(UTC)
    day = timedelta(days=1)

    assert now - day - timedelta(minutes=1) < past.convert("1d", None, None) <= now - day + timedelta(minutes=1)
    assert now + day - timedelta(minutes=1) < future.convert("24h", None, None) <= now + day + timedelta(minutes=1)
    for text in ("2030-01-31", "2030-01-31T00:00", "2030-01-31T00:00:00Z", "2030-01-31T01:00:00+01:00"):
        assert past.convert(text, None, None) == datetime(2030, 1, 31, tzinfo=UTC)
    for text in ("soon", "2030-13-01", "9999999999d", "31.01.2030"):
        with pytest.raises(click.BadParameter, match="must be a duration such as 90d, or a time"):
            past.convert(text, None, None)


def test_days_are_whole() -> None:
    """Ours: a number of days takes every form of a duration that is one (CLI-2)."""
    assert [DaysType().convert(text, None, None) for text in ("90", "90d", "48h", "P7D", "1w")] == [90, 90, 2, 7, 7]
    for text in ("36h", "x", "1.5d"):
        with pytest.raises(click.BadParameter, match="such as 90d"):
            DaysType().convert(text, None, None)


def _options(command: click.Command, path: str) -> Iterator[tuple[str, click.Option]]:
    context = click.Context(command)
    for one in command.params:
        if isinstance(one, click.Option):
            yield f"{path} {one.opts[0]}", one
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _options(below, f"{path} {name}")


def test_every_option_for_a_time_reads_the_same_notation() -> None:
    """Ours: `15m` or `90d` is understood wherever a time or a duration is expected (CLI-2)."""
    words = (
        "interval",
        "timeout",
        "lifetime",
        "overlap",
        "idle",
        "expires",
        "since",
        "until",
        "cache",
        "days",
        "older",
    )
    refused: list[str] = []
    seen = 0
    for name, option in _options(gateway, "gateway"):
        wants_path = isinstance(option.type, click.Path)
        if not any(word in option.opts[0] for word in words) or option.is_flag or wants_path:
            continue
        seen += 1
        try:
            option.type.convert("90d" if "timeout" not in name else "2s", option, click.Context(gateway))
        except click.UsageError as error:
            refused.append(f"{name}: {error.format_message()}")
        assert not isinstance(option.type, click.types.StringParamType), name
    assert refused == []
    assert seen > 15
