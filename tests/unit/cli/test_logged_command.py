"""Streams of commands that a log collector reads."""

import json
import logging
import sys
import threading
import warnings
from collections.abc import Generator
from typing import cast

import click
import pytest
import structlog

from gateway.cli.failures import Failure
from gateway.cli.logged_command import LoggedCommand, show_line
from gateway.telemetry.line_writer import LineWriter


@pytest.fixture
def as_json(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """The variable is set; what the command changes of the process is put back."""
    monkeypatch.setenv("GATEWAY_LOG_FORMAT", "json")
    for owner, name in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    root, kept = logging.getLogger(), structlog.get_config()
    handlers, level = root.handlers, root.level
    with warnings.catch_warnings():
        yield
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level
    structlog.configure(**kept)


def _run(callback: click.Command) -> None:
    try:
        callback.main(args=[], standalone_mode=False)
    except Failure as failure:
        failure.show()


@pytest.mark.usefixtures("as_json")
def test_warnings_and_forgotten_exceptions_are_lines_too(capfd: pytest.CaptureFixture[str]) -> None:
    """Ours: a text that Python itself writes is a JSON line, where lines are JSON (SRV-3)."""

    def fail() -> None:
        raise ValueError("first line\nsecond line")

    @click.command(cls=LoggedCommand)
    def command() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("an odd\nthing", stacklevel=1)
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        logging.getLogger("asyncio").error("a task\nwas lost")
        raise RuntimeError("an unforeseen\nfault")

    _run(command)

    [handler] = logging.getLogger().handlers
    assert cast("logging.StreamHandler[LineWriter]", handler).stream.drain()  # as the exit of the process does
    out, err = capfd.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert out == ""
    assert [line["event"] for line in lines][1:] == ["thread_failed", "a task\nwas lost", "command_failed"]
    assert "an odd" in lines[0]["event"]
    assert "second line" in lines[1]["exception"]
    assert lines[3]["reason"] == "unexpected RuntimeError: an unforeseen fault"


@pytest.mark.usefixtures("as_json")
def test_an_interrupt_writes_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """Ours: click's empty line is no JSON (SRV-3)."""

    @click.command(cls=LoggedCommand)
    def command() -> None:
        raise KeyboardInterrupt

    with pytest.raises(click.Abort):
        _run(command)

    assert capfd.readouterr() == ("", "")


def test_without_json_a_failure_is_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a person reads a sentence (SRV-3)."""
    monkeypatch.setenv("GATEWAY_LOG_FORMAT", "auto")

    @click.command(cls=LoggedCommand)
    def command() -> None:
        raise Failure("it is so")

    _run(command)

    assert capsys.readouterr().err == "gateway: it is so\n"


def test_an_object_is_one_line_for_every_content(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: separators of lines in values split no line (SRV-3)."""
    show_line({"url": "a\nb\u2028c\x85d"})

    assert len(capsys.readouterr().out.splitlines()) == 1
