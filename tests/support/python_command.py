"""The command that stands for `python` in the test processes and the servers of forks (`python_template.py`)."""

import multiprocessing
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_VARIABLE = "TESTS_PYTHON"
_MAX_WAITING = 64
IS_POSSIBLE = hasattr(os, "pidfd_open")
"""Linux alone has it."""


@contextmanager
def python_command(*modules: str) -> Generator[str]:
    """A command whose processes have imported these modules: forks of a template, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="gwp-") as folder:
        path = str(Path(folder) / "socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            listener.listen(_MAX_WAITING)  # connections wait until the template has imported
            number = listener.fileno()
            template = [sys.executable, "-m", "tests.support.python_template", str(number), *modules]
            child = subprocess.Popen(template, cwd=_ROOT, stdin=subprocess.PIPE, pass_fds=[number])
        client = [sys.executable, "-I", "-S", str(Path(__file__).with_name("forked_python.py")), path]
        command = Path(folder) / "python"
        command.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
        command.chmod(0o700)
        try:
            yield str(command)
        finally:
            child.communicate()


@contextmanager
def offered_command() -> Generator[str | None]:
    """The command whose processes have imported the gateway, named to those that start in the block.

    The one that was offered to this process already, if any; None where it is not possible.
    """
    offered = os.environ.get(_VARIABLE)
    if offered or not IS_POSSIBLE:
        yield offered
        return
    with python_command("tests.support.gateway_imports", "tests.support.collected_modules") as command:
        os.environ[_VARIABLE] = command
        try:
            yield command
        finally:
            del os.environ[_VARIABLE]


def module_command(module: str, workers: str) -> list[str]:
    """The command that runs a module in a fork, whose workers are forked from that template; else in a new process."""
    if command := os.environ.get(_VARIABLE):
        fork_workers = f"from tests.support.worker_starts import fork_from; fork_from(lambda: {workers!r})"
        run_module = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        return [command, "-c", f"{fork_workers}; {run_module}"]
    return [sys.executable, "-m", module]


def use_command() -> None:
    """Let the server from which this process has replicas forked be started by the command, where there is one."""
    if command := os.environ.get(_VARIABLE):
        multiprocessing.set_executable(command)
