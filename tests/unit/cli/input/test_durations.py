"""Durations on the command line: one notation, and the spellings of earlier releases."""

from collections.abc import Iterator, Sequence
from typing import Any

import click
import pytest

from gateway.cli.commands.identity.issuers import issuer
from gateway.cli.commands.identity.keys import key
from gateway.cli.commands.live_sources import live_source
from gateway.cli.commands.sources import source
from gateway.cli.kinds.index import watch

_PLAIN = [(watch, "create", "--interval"), (source, "add", "--timeout"), (issuer, "create", "--max-lifetime")]
_WITH_UNITS = [(key, "rotate", "--overlap"), (issuer, "create", "--grant-idle")]


def _types(options: Sequence[tuple[click.Group, str, str]]) -> Iterator[click.ParamType[Any]]:
    for group, verb, option in options:
        yield from (one.type for one in group.commands[verb].params if option in one.opts)


def test_every_duration_takes_units_and_older_options_take_seconds_too() -> None:
    """Ours: `15m` is understood by every option for a time; what took plain seconds still does."""
    older, newer = list(_types(_PLAIN)), list(_types(_WITH_UNITS))
    [timeout] = _types([(live_source, "create", "--timeout")])

    assert [one.convert("15m", None, None) for one in (*older, *newer)] == [900] * 5
    assert [one.convert("900", None, None) for one in older] == [900] * 3
    for one in newer:
        with pytest.raises(click.BadParameter, match="must be a number with s, m, h or d"):
            one.convert("900", None, None)
    assert [timeout.convert(given, None, None) for given in ("2m", "30", "2.5")] == [120, 30, 2.5]
    for given in ("6m", "0.5", "2.5m", "soon"):
        with pytest.raises(click.BadParameter):
            timeout.convert(given, None, None)
