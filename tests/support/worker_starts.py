"""Starts workers of gateways under test by forking them from a template, instead of importing for each."""

import contextlib
import functools
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from signal import Signals

import anyio
from anyio.abc import Process, UNIXSocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.sandbox import processes
from tests.support.worker_template import MODULES, NUMBER

_start = processes._start  # pyright: ignore[reportPrivateUsage]  # what it starts is replaced


def fork_from(template: Callable[[], str]) -> None:
    """Fork the gateway's own workers from the template at the socket given; other commands are started as they are."""
    if hasattr(os, "pidfd_open"):  # Linux alone has it
        processes._start = functools.partial(_start_forked, template)  # pyright: ignore[reportPrivateUsage]


def start_as_usual() -> None:
    """Start them as in production."""
    processes._start = _start  # pyright: ignore[reportPrivateUsage]


class ForkedWorker(Process):
    """A worker that the template has forked, with what the gateway uses of a process."""

    def __init__(self, pid: int, reports: UNIXSocketStream, stdin: UNIXSocketStream, stdout: UNIXSocketStream) -> None:
        self._pid = pid
        self._reports = reports
        self._stdin = stdin
        self._stdout = stdout
        self._status: int | None = None

    async def wait(self) -> int:
        """The exit status, which the template reports."""
        if self._status is None:
            report = await BufferedByteReceiveStream(self._reports).receive_exactly(NUMBER)
            self._status = int.from_bytes(report, "big", signed=True)
        return self._status

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, signal: Signals) -> None:
        """Send a signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal)

    @property
    def pid(self) -> int:
        """The process, which leads a group of its own."""
        return self._pid

    @property
    def returncode(self) -> int | None:
        """The exit status once it was waited for."""
        return self._status

    @property
    def stdin(self) -> UNIXSocketStream:
        """The stream of its input."""
        return self._stdin

    @property
    def stdout(self) -> UNIXSocketStream:
        """The stream of its output."""
        return self._stdout

    @property
    def stderr(self) -> None:
        """Nothing: its output is discarded."""
        return

    async def aclose(self) -> None:
        """Close the streams, end it and wait for that."""
        if self._status is None:
            self.kill()
        for stream in (self._stdin, self._stdout):
            await stream.aclose()
        await self.wait()
        await self._reports.aclose()


async def _start_forked(template: Callable[[], str], command: Sequence[str]) -> Process:
    *python, module = command
    if module not in MODULES or python != [sys.executable, "-I", "-m"]:
        return await _start(command)
    reports = socket.socket(socket.AF_UNIX)
    reports.connect(template())
    (stdin, worker_stdin), (stdout, worker_stdout) = socket.socketpair(), socket.socketpair()
    with worker_stdin, worker_stdout:
        socket.send_fds(reports, [module.encode()], [worker_stdin.fileno(), worker_stdout.fileno()])
    started: list[Process] = []
    with anyio.CancelScope(shield=True):  # a cancelled start would leave the sockets open
        streams = [await UNIXSocketStream.from_socket(each) for each in (reports, stdin, stdout)]
        pid = int.from_bytes(await BufferedByteReceiveStream(streams[0]).receive_exactly(NUMBER), "big")
        started.append(ForkedWorker(pid, *streams))
    return started[0]
