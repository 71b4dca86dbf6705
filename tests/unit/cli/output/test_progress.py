"""Messages of a long command while it works."""

import io

import pytest

from gateway.cli.output.progress import Progress


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_each_stage_is_one_line() -> None:
    """Ours: a log holds no carriage returns."""
    stream = io.StringIO()

    with Progress(stream) as progress:
        progress.stage("Reading")
        progress.stage("Sending")

    assert stream.getvalue() == "Reading …\nSending …\n"


def test_on_a_terminal_a_stage_ends_with_the_time_it_took() -> None:
    """Ours: progress shows real events; there is no invented percentage."""
    stream = Terminal()

    with Progress(stream) as progress:
        progress.stage("Reading")

    assert stream.getvalue().split("\x1b[K")[-1].startswith("Reading (")
    assert "%" not in stream.getvalue()


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a terminal without cursor control, such as that of an editor, shows one line per stage (CLI-2)."""
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()

    with Progress(stream) as progress:
        progress.stage("Reading")

    assert stream.getvalue() == "Reading …\n"


def test_a_stage_that_failed_is_not_reported_as_done() -> None:
    """Ours: the error that follows has a line of its own."""
    stream = Terminal()

    with pytest.raises(ValueError, match="broken"), Progress(stream) as progress:
        progress.stage("Reading")
        raise ValueError("broken")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_a_silent_progress_writes_nothing() -> None:
    """Ours: with --json there is nothing to read but the answer."""
    stream = Terminal()

    with Progress(stream, is_silent=True) as progress:
        progress.stage("Reading")

    assert stream.getvalue() == ""
