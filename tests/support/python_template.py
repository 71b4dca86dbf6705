"""Python processes forked from one that has imported the gateway: `python -m tests.support.python_template STAGE …`.

The test processes of pytest-xdist, and the servers from which replicas are forked, would each import it, 2.5 s of CPU.
They are started by a command that replaces `python` (`forked_python.py`). It sends its arguments, variables, folder and
open files to this process, whose fork has the same and runs what follows `-c`. The command ends with the fork's exit
status, and a fork is killed when its command is gone. This process ends when its standard input does.

A stage is the number of a listener and the names of modules: `3:json,shlex`. What connects to the listener becomes a
fork that has imported the modules of this stage and of those before, and no others: a fork of little memory is cheap.
"""

import contextlib
import fcntl
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TypedDict

import msgspec

MAX_FILES = 100
MAX_REQUEST_BYTES = 2**17
NUMBER = 4
"""Bytes of an exit status, which is signed: negative for a signal."""
_STREAMS = 3
_ABOVE = 512
"""File descriptors from which on received files are put aside."""


class Request(TypedDict):
    """Arguments and environment of a command. `files` are the numbers of the files that come with it."""

    arguments: Sequence[str]
    variables: dict[str, str]
    folder: str
    files: Sequence[int]


def main(stages: Sequence[str]) -> None:
    """Import the modules of each stage, then fork for each connection; in a fork, run the program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: pytest ends this process
    gc.disable()  # it would visit all modules again and again
    listeners = {int(number): names.split(",") for number, _, names in (stage.partition(":") for stage in stages)}
    own = last = max(listeners)
    servers = list[int]()
    for listener, names in listeners.items():
        for name in filter(None, names):
            with contextlib.suppress(Exception):  # the program that imports it as well reports what is wrong
                importlib.import_module(name)
        gc.collect()
        gc.freeze()  # the first collection of a fork would copy it
        if listener == last:
            break
        if (server := os.fork()) == 0:
            own = listener
            break
        os.close(listener)
        servers.append(server)
    gc.enable()
    for later in listeners:
        if later > own:
            os.close(later)
    with selectors.DefaultSelector() as events, socket.socket(fileno=own) as accepting:
        events.register(0, selectors.EVENT_READ)
        events.register(accepting, selectors.EVENT_READ)
        started = _serve(accepting, events)
    if started is not None:
        _become(*started)
    elif own == last:
        for server in servers:
            os.waitpid(server, 0)


def _serve(server: socket.socket, events: selectors.BaseSelector) -> tuple[Request, list[int]] | None:
    """Fork until standard input ends; in a fork, return what to run with which files."""
    while True:
        for key, _ in events.select():
            if key.fileobj == 0:
                return None
            if key.fileobj is server:
                if (started := _fork(server, events)) is not None:
                    return started
            elif events.get_map().get(key.fd) is key:  # else its fork has been reported in this turn
                _end(key, events)


def _fork(server: socket.socket, events: selectors.BaseSelector) -> tuple[Request, list[int]] | None:
    client, _ = server.accept()
    message, files, _, _ = socket.recv_fds(client, MAX_REQUEST_BYTES, MAX_FILES)
    fork = os.fork()
    if fork == 0:
        return msgspec.json.decode(message, type=Request), files
    for file in files:
        os.close(file)
    ended = os.pidfd_open(fork)
    for watched in (client, ended):
        events.register(watched, selectors.EVENT_READ, (fork, client, ended))
    return None


def _end(key: selectors.SelectorKey, events: selectors.BaseSelector) -> None:
    """Report the exit status of a fork that has ended, or kill one whose command is gone."""
    fork, client, ended = key.data
    if key.fileobj is client:
        with contextlib.suppress(ProcessLookupError):
            os.kill(fork, signal.SIGKILL)
    _, status = os.waitpid(fork, 0)
    with contextlib.suppress(OSError):
        client.sendall(os.waitstatus_to_exitcode(status).to_bytes(NUMBER, "big", signed=True))
    for watched in (client, ended):
        events.unregister(watched)
    client.close()
    os.close(ended)


def _become(request: Request, files: Sequence[int]) -> None:
    """Run the program in this fork, as the interpreter does: this process ends when it returns."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    aside = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for file in files]
    os.closerange(0, _ABOVE)
    for number, file in zip(request["files"], aside, strict=True):
        os.dup2(file, number, inheritable=number < _STREAMS)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    os.environ.clear()
    os.environ.update(request["variables"])
    os.chdir(request["folder"])
    _, code, *arguments = request["arguments"]
    sys.argv = ["-c", *arguments]
    program = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, program.__dict__)


if __name__ == "__main__":
    main(sys.argv[1:])
