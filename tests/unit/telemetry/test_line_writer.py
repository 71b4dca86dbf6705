"""The log's way out: what becomes of its destination never reaches what logs."""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path

import click
import orjson
import pytest
import structlog

from gateway.telemetry.line_writer import LineWriter
from gateway.telemetry.logs import configure_logging
from gateway.telemetry.standard_streams import QueuedStream, replace_standard_streams

_PIPE = 65_536


@pytest.fixture
def pipe() -> Generator[tuple[int, int]]:
    """A pipe: where to read and where to write."""
    reader, writer = os.pipe()
    yield reader, writer
    for end in (reader, writer):
        try:
            os.close(end)
        except OSError:
            continue


@pytest.fixture
def unconfigured() -> Generator[None]:
    """Logging and standard streams as they were, after the test."""
    root = logging.getLogger()
    before = structlog.get_config(), root.handlers, root.level, sys.stdout, sys.stderr
    yield
    structlog.configure(**before[0])
    root.handlers, sys.stdout, sys.stderr = before[1], before[3], before[4]
    root.setLevel(before[2])


def _writer(descriptor: int, *, capacity: int = 1 << 20) -> LineWriter:
    with os.fdopen(os.dup(descriptor), "w") as stream:
        return LineWriter(stream, capacity=capacity)


def test_an_unread_pipe_costs_lines_and_reports_their_number(pipe: tuple[int, int]) -> None:
    """Ours: nothing waits for a reader; what waits is bounded, the rest is counted, and the reader learns of it."""
    reader, sink = pipe
    os.write(sink, b"x" * _PIPE)  # full
    writer = _writer(sink, capacity=1000)

    for number in range(100):
        writer.write(f"line {number:03} of a hundred\n")

    assert not writer.drain(0.01)
    assert not writer.drain(60), "waited twice for a destination that takes nothing"
    kept = 100 - writer.lost
    assert 20 < kept < 100
    os.read(reader, _PIPE)
    os.close(sink)
    text = _read_until(reader, b"lines were lost\n", writer)
    assert text.count(b" of a hundred\n") >= kept
    assert sum(int(found) for found in re.findall(rb"(\d+) log lines were lost\n", text)) == writer.lost


def _read_until(reader: int, end: bytes, writer: LineWriter) -> bytes:
    """Read to the end, while further lines are put, because only a line shows that writing works again."""
    text, lost = b"", 0
    while end not in text or lost != writer.lost:  # a line was lost after the notice was made
        lost = writer.lost
        writer.write("one more\n")
        text += os.read(reader, _PIPE)
    return text


def test_a_reader_that_has_ended_and_a_full_disk_cost_lines_only(pipe: tuple[int, int]) -> None:
    """Ours: an error of the write goes nowhere; every line that it cost is counted."""
    reader, sink = pipe
    os.close(reader)
    with Path("/dev/full").open("w") as full:
        for writer in (_writer(sink), LineWriter(full)):
            for _ in range(3):
                writer.write("a line\nand another\n")
                assert writer.drain()
            assert writer.lost == 6


def test_a_line_cut_by_a_full_disk_does_not_damage_the_next(tmp_path: Path) -> None:
    """Ours: the line after a torn one begins a line of its own, after the number of lost ones."""
    log = tmp_path / "log"
    left = [5]
    with log.open("w") as stream:
        writer = LineWriter(stream)
        write = writer._send  # pyright: ignore[reportPrivateUsage]  # no disk fills up at a byte that a test names

        def fill(data: bytes) -> int:
            if not left[0]:
                raise OSError(28, "No space left on device")
            done = write(data[: left[0]])
            left[0] -= done
            return done

        writer._send = fill  # pyright: ignore[reportPrivateUsage]
        writer.write("first line\n")
        writer.write("second line\n")
        writer.drain()
        left[0] = 1000
        writer.write("third line\n")
        writer.drain()

    assert log.read_text() == "first\n2 log lines were lost\nthird line\n"


def test_a_descriptor_that_does_not_wait_is_waited_for(pipe: tuple[int, int]) -> None:
    """Ours: a non-blocking pipe, which a parent may share, loses nothing while it is read."""
    reader, sink = pipe
    os.set_blocking(sink, False)
    writer = _writer(sink)
    lines = 4 * _PIPE // 64
    for _ in range(lines):
        writer.write("x" * 63 + "\n")

    received = b""
    while len(received) < lines * 64:
        received += os.read(reader, _PIPE)

    assert (received.count(b"\n"), writer.lost) == (lines, 0)


def test_a_fork_writes_its_own_lines(pipe: tuple[int, int]) -> None:
    """Ours: a forked process has no thread of its parent's; it starts one of its own, and repeats no line."""
    reader, sink = pipe
    writer = _writer(sink)
    writer.write("parent\n")
    writer.drain()
    child = os.fork()
    if not child:
        writer.write("child\n")
        os._exit(0 if writer.drain() else 1)

    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 100) == b"parent\nchild\n"


class _Unprintable:
    def __repr__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("as_json", [True, False])
def test_a_value_that_cannot_be_rendered_is_a_shorter_line(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch, unconfigured: None, as_json: bool
) -> None:
    """Ours: a log call never raises, whatever this code, a library or an exception's own text gives it."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    reader, sink = pipe
    with os.fdopen(os.dup(sink), "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        writer = configure_logging(level="info", as_json=as_json)
    log = structlog.get_logger()

    log.info("first_happened", value=_Unprintable(), more={_Unprintable(): 1})
    try:
        raise Odd
    except Odd:
        log.exception("second_happened")
    logging.getLogger("library").error("third %d", "no number")
    logging.getLogger("library").error("fourth %s", _Unprintable())
    log.info("fifth_happened", number=1 << 70, text="\ud800")
    log.info("sixth_happened", text="\x1b]0;title\x07")

    assert writer.drain()
    text = os.read(reader, _PIPE).decode()
    assert all(
        word in text
        for word in ("first_happened", "second_happened", "third", "fourth", "fifth_happened", "sixth_happened")
    )
    assert "\x1b]" not in text, "a caller's text controls the terminal that shows the log"
    if as_json:
        assert all(orjson.loads(line)["level"] in {"info", "error"} for line in text.splitlines())


def test_everything_printed_goes_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unconfigured: None
) -> None:
    """Ours: `print`, warnings, tracebacks of threads and handlers that fail reach the queue as whole lines."""
    with (tmp_path / "out").open("w") as out, (tmp_path / "errors").open("w") as errors:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", errors)
        replace_standard_streams()
    streams = sys.stdout, sys.stderr
    replace_standard_streams()

    assert streams == (sys.stdout, sys.stderr)
    assert isinstance(sys.stdout, QueuedStream)
    assert isinstance(sys.stderr, QueuedStream)
    assert configure_logging(level="info", as_json=True) is sys.stderr.writer
    print("printed", 1, end="")
    print(" and", "ended", "\udc80")
    click.echo("echoed")
    print("begun", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    sys.excepthook(ValueError, ValueError("of the end"), None)
    thread = threading.Thread(target=lambda: 1 // 0)
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    thread.start()
    thread.join()

    assert all(stream.writer.drain() for stream in (sys.stdout, sys.stderr))
    assert (tmp_path / "out").read_text() == "printed 1 and ended \\udc80\nechoed\n"
    text = (tmp_path / "errors").read_text()
    assert text.startswith("begun\nValueError: of the end\n")
    assert "ZeroDivisionError: " in text


def test_a_standard_stream_that_is_closed_gives_its_number_to_no_file() -> None:
    """Ours: text for standard error never reaches a socket that was opened in its place."""
    code = (
        "import os, socket, sys; from gateway.telemetry.standard_streams import *; open_closed_descriptors();"
        "replace_standard_streams(); print('lost', file=sys.stderr); sys.stderr.writer.drain();"
        "print(socket.socket().fileno() > 2, os.fstat(2).st_rdev == os.stat(os.devnull).st_rdev)"
    )

    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@" 2>&-', sys.executable, "-c", code], stdout=subprocess.PIPE, check=False
    )

    assert done.stdout == b"True True\n"


def test_a_line_at_the_end_of_the_interpreter_ends_the_process() -> None:
    """Ours: a finalizer that logs while modules are cleared waits for no thread, which would not run (OPR-2)."""
    code = (
        "import sys; from gateway.telemetry.line_writer import LineWriter\n"
        "class Last:\n"
        "    def __init__(self): self.writer = LineWriter(sys.stderr)\n"
        "    def __del__(self): self.writer.write('late\\n')\n"
        "last = Last(); last.itself = last\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0
