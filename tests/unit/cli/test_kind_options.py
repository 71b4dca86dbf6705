"""Options that are derived from the members of a kind."""

from typing import Any

import click
import pytest
from click.testing import CliRunner

from gateway.cli.input.times import write_duration
from gateway.cli.kinds.options import add_options, fields_of, options_of
from gateway.kinds.kind import Kind
from gateway.kinds.selections import GUARDRAIL
from gateway.kinds.updates import WATCH

URL = "https://judge.example/"
OLDER = ["--tool", "a*", "--tool", "b*", "--source", "s", "--hook", URL, "--credential", "c", "--fail", "open"]
NEWER = [
    *("--scope-name", "a*", "--scope-name", "b*", "--scope-source", "s"),
    *("--hook-url", URL, "--hook-credential", "c", "--hook-fail", "open"),
]
FIELDS = {
    "scope": {"names": ["a*", "b*"], "sources": ["s"]},
    "hook": {"url": URL, "credential": "c", "fail": "open"},
}


def _run(kind: Kind[Any], *given: str, is_new: bool = True) -> tuple[dict[str, object], str]:
    """The fields that these options describe, and the output."""
    options = options_of(kind, is_new=is_new)
    found: dict[str, object] = {}

    def take(**values: Any) -> None:
        found.update(fields_of(options, values))

    done = CliRunner().invoke(click.command()(add_options(take, options)), given)
    assert done.exit_code == 0, done.output
    return found, done.output


@pytest.mark.parametrize("given", [OLDER, NEWER, [*OLDER[:2], *NEWER[2:]]], ids=["older", "newer", "mixed"])
def test_options_of_earlier_releases_are_accepted(given: list[str]) -> None:
    """Ours: a renamed option is accepted under both names (CLI-1)."""
    assert _run(GUARDRAIL, *given)[0] == FIELDS


def test_help_has_the_new_names_and_the_defaults() -> None:
    """Ours: help shows one name of an option, and the default of what a creation may leave out (CLI-1)."""
    _, created = _run(GUARDRAIL, "--help")
    _, changed = _run(GUARDRAIL, "--help", is_new=False)
    words = created.split()
    assert {"--scope-name", "--hook-url", "--hook-fail"} <= {*words}
    assert not {"--tool", "--hook", "--fail"} & {word.strip(",") for word in words}
    assert [text in " ".join(words) for text in ("Default: 100.", "Default: 1s.", "Default: closed.")] == [True] * 3
    assert "Default:" not in changed


def test_durations_have_units() -> None:
    """Ours: an interval is given and printed as `5m`, and its bounds are in the help (CLI-1)."""
    assert _run(WATCH, "--interval", "5m")[0] == {"interval_s": 300}
    assert "(5s to 1d)" in " ".join(_run(WATCH, "--help")[1].split())
    assert [write_duration(each) for each in (0, 59, 60, 90, 7200, 86_400)] == ["0s", "59s", "1m", "90s", "2h", "1d"]
