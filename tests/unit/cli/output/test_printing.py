"""The escapes that are printed in place of characters that a terminal obeys."""

import io
import json
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.text import Text

from gateway.cli.audit_verifier import main as verify
from gateway.cli.output.printing import colored, echo, join, prompt, show, visible
from gateway.cli.output.terminal import has_colors
from tests.support.screens import screen

_HOSTILE = "\x1b[2J\r\x07\x9b31m\u202e\u2066\U000e0041\ufeff"
_SHOWN = "\\x1b[2J\\r\\x07\\x9b31m\\u202e\\u2066\\U000e0041\\ufeff"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (_HOSTILE, _SHOWN),
        ("two\n\tlines\r\nof text", "two\n\tlines\nof text"),
        ("図書館 e\u0301 👩\u200d👩 می\u200cخواهم", "図書館 e\u0301 👩\u200d👩 می\u200cخواهم"),
        ("\u2028\x7f\x85\x00", "\\u2028\\x7f\\x85\\x00"),
    ],
)
def test_control_characters_of_terminals_are_shown_as_escapes(text: str, shown: str) -> None:
    """Attack: names with escape sequences or bidi overrides change what the reader of a report sees (CLI-1)."""
    assert visible(text) == shown
    assert visible(shown) == shown


def test_printed_text_passes_the_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    """Attack: text, errors and JSON reach the terminal with escapes; JSON has the exact value (CLI-1)."""
    echo(_HOSTILE)
    echo(_HOSTILE, err=True)
    show({"name": _HOSTILE}, str, as_json=True)
    printed, errors = capsys.readouterr()

    assert errors == f"{_SHOWN}\n"
    assert printed.startswith(f"{_SHOWN}\n")
    found = printed.removeprefix(f"{_SHOWN}\n")
    assert json.loads(found) == {"name": _HOSTILE}
    assert found.replace("\n", "").isprintable()


def test_a_question_shows_hostile_labels_defaults_and_refusals_as_escapes() -> None:
    """Attack: a form of a server has escape sequences in its label, default and choices; the value stays exact."""

    def read(typed: str) -> str:
        if typed == "wrong":
            raise click.BadParameter(f"none of {_HOSTILE}")
        return typed

    @click.command()
    def ask() -> None:
        assert prompt(f"label{_HOSTILE}", default=_HOSTILE, read=read) == _HOSTILE

    ended = CliRunner().invoke(ask, input="wrong\n\n")

    assert ended.exit_code == 0, ended.output
    assert ended.output.count(_SHOWN) == 5
    assert ended.output.replace("\n", "").isprintable()


def test_the_verifier_prints_a_forged_export_with_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Attack: the head of a forged export hides the verdict with escape sequences (AUD-3)."""
    head: dict[str, object] = {
        "type": "export",
        "format": 1,
        "tenant": f"evil{_HOSTILE}",
        "made_at": _HOSTILE,
        "filter": {},
    }
    export = tmp_path / "export"
    export.write_text(json.dumps(head) + "\n")

    assert verify([str(export), "--key", "00" * 32]) == 1

    printed = capsys.readouterr().out
    assert "evil" in printed
    assert printed.replace("\n", "").isprintable()


def test_colors_are_those_of_the_gateway_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: a color that a command gives is printed; one in a text of a server is an escape (CLI-1)."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    echo(join(["\x1b[7m", colored(f"new {_HOSTILE} [red]x[/red] :bomb:", "green")]))

    shown = f"\\x1b[7m\n\x1b[32mnew {_SHOWN} [red]x[/red] :bomb:\x1b[0m\n"
    assert capsys.readouterr().out == shown


def test_a_style_is_no_way_around_the_escapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: characters that reach a text with colors without being cleaned are printed as escapes (CLI-1)."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    echo(Text("a\x1b[2J\u202e", style="red"))

    assert capsys.readouterr().out == "\x1b[31ma\\x1b[2J\\u202e\x1b[0m\n"


@pytest.mark.parametrize(
    ("variables", "at_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "0"}, True, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR": "0"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colors_follow_the_variables_that_programs_share(
    variables: dict[str, str], at_terminal: bool, elsewhere: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: no-color.org, and no escape sequences in files and logs unless they are demanded (CLI-1)."""
    for name in ("NO_COLOR", "TERM", "CLICOLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert has_colors() is elsewhere
    with screen() as (stream, _):
        monkeypatch.setattr(sys, "stdout", stream)
        assert has_colors() is at_terminal
        monkeypatch.undo()
