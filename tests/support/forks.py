"""Processes of the gateway forked from one that has imported everything, which is most of what a start takes.

One such process serves each test process (`multiprocessing`'s fork server). What forks from it is `python -m gateway`
in all that a test can see from outside: a process of its own, with its arguments, variables, folder and streams; but a
test can move its clock. A test that is about starting or about imports starts the program itself.
"""

import atexit
import multiprocessing
import os
import pkgutil
import runpy
import signal
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO

import gateway.cli.commands
from tests.support import movable_clock, worker_starts
from tests.support.workers import worker_template

PRELOADED = (
    *("tests.support.movable_clock", "tests.support.worker_starts", "gateway.app.build", "examples.run"),
    *("gateway.cli.main", "httpcore", "certifi", "encodings.idna"),  # what a command imports when it sends a request
    *("anyio._backends._asyncio", "importlib.readers", "uvicorn.lifespan.off", "uvicorn.protocols.websockets.auto"),
    *(found.name for found in pkgutil.walk_packages(gateway.cli.commands.__path__, "gateway.cli.commands.")),
    "tests.support.frozen_imports",
)
_APPENDED = os.O_RDWR | os.O_APPEND | os.O_CREAT
_ENDING_S = 60.0
_FAR_S = 1e9
_one_by_one = threading.Lock()
"""Starting a process looks how all others ended, and a status that one thread has read cannot be read by another."""


class Forked:
    """A running `python -m gateway`, or of another module, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        module: str = "gateway",
        folder: Path | None = None,
        given: Path | Connection | None = None,
        output: Path | Connection | None = None,
        errors: Path | Connection | None = None,
    ) -> None:
        """Start `python -m` with that module. Its streams are the files named, appended to, or ends of pipes.

        `stdout` is a pipe where nothing is named for it.
        """
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(PRELOADED))
        reader, writer = context.Pipe(duplex=False)
        streams = [given or Path(os.devnull), output or writer, errors or Path(os.devnull)]
        self._lead = context.RawValue(movable_clock.Lead)
        program = (module, *arguments)
        process = program, dict(environment), str(folder or Path.cwd()), streams
        self._child = context.Process(target=_become, args=(*process, self._lead, worker_template()), daemon=True)
        with _one_by_one:
            self._child.start()
        writer.close()
        self.stdout: IO[bytes] | None = os.fdopen(os.dup(reader.fileno()), "rb") if output is None else None
        reader.close()
        assert self._child.pid is not None
        self.pid = self._child.pid

    @property
    def returncode(self) -> int | None:
        """The exit code once it was waited for: negative for a signal."""
        return self.poll()

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with _one_by_one:
            return self._child.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; the exit code.

        Raises:
            TimeoutError: it runs on.
        """
        if not wait([self._child.sentinel], timeout):
            raise TimeoutError(f"process {self.pid} has not ended within {timeout} s")
        with _one_by_one:
            self._child.join(_ENDING_S)
            assert self._child.exitcode is not None
            return self._child.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def advance(self, seconds: float) -> None:
        """Begin to move its clock ahead, which takes a twentieth of the time (see `tests/support/movable_clock.py`)."""
        self._lead.goal_s = max(self._lead.goal_s, self._lead.reached_s) + seconds
        self.send_signal(movable_clock.MOVED)

    @contextmanager
    def hurrying(self) -> Generator[None]:
        """While the block runs, its clock runs ahead, some twenty seconds in one."""
        self.advance(_FAR_S)
        try:
            yield
        finally:
            self._lead.goal_s = 0.0

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def end(self) -> None:
        """End it, wait for that and close what it was read from."""
        self.kill()
        self.wait(_ENDING_S)
        if self.stdout is not None:
            self.stdout.close()


def _become(
    program: tuple[str, ...],
    environment: dict[str, str],
    folder: str,
    streams: list[Path | Connection],
    lead: movable_clock.Lead,
    workers: str,
) -> None:
    """Turn a fresh fork into the program."""
    opened = [Connection(os.open(each, _APPENDED, 0o600)) if isinstance(each, Path) else each for each in streams]
    for number, stream in enumerate(opened):
        os.dup2(stream.fileno(), number)
    for stream in set(opened):
        stream.close()
    sys.stdin = os.fdopen(0, closefd=False)  # the objects of the process that forked know what its streams were
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))  # as the interpreter reads it
    sys.argv = list(program)
    movable_clock.install(lead)
    worker_starts.fork_from(lambda: workers)
    atexit._clear()  # pyright: ignore[reportPrivateUsage]  # those of the process that forked
    try:
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
    finally:
        # as an interpreter does, and `multiprocessing` before Python 3.13 does not
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
