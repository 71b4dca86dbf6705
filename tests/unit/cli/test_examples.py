"""The examples in the help of commands: each command that changes something has one, and click accepts each."""

from pathlib import Path

import click
import pytest

from tests.support.command_tree import LEAVES, Leaf, calls_in, parse, write_files

READING = frozenset(
    {
        *("list", "show", "status", "report", "diff", "overrides", "versions", "primitives", "deleted", "validate"),
        *("deliveries", "delivery", "check", "explain", "keys", "export", "tail", "verify", "watch", "doctor"),
    }
)
"""Verbs that change nothing. Another verb needs an example."""


@pytest.fixture(autouse=True)
def in_folder_with_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that examples name."""
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)


def test_every_command_that_writes_has_an_example_of_itself() -> None:
    """Ours: a person who reads the help of a command sees a line to start from (CLI-4)."""
    without = [
        " ".join(leaf.path)
        for leaf in LEAVES
        if leaf.path[-1] not in READING
        and not leaf.command.hidden
        and not any(parse(words) == leaf.path for line in leaf.lines for words in calls_in(line))
    ]

    assert without == []
    assert len(LEAVES) > 200


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if leaf.lines], ids=lambda leaf: " ".join(leaf.path))
def test_click_accepts_every_example(leaf: Leaf) -> None:
    """Ours: an example names existing commands, options and values, and all required arguments (CLI-4)."""
    calls = [words for line in leaf.lines for words in calls_in(line)]

    assert calls, leaf.lines
    for words in calls:
        assert parse(words), words


def test_a_wrong_example_is_found() -> None:
    """Ours: the check above sees options, commands and values that do not exist."""
    for wrong in (
        "tool lst",
        "tool list --stat x",
        "policy set --safe perhaps",
        "key create one two",
        "audit tail --since soon",
    ):
        with pytest.raises(click.ClickException):
            parse([*wrong.split()])
