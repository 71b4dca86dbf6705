"""The command that replaces `python` in the test processes and the servers of forks (`python_template.py`)."""

import multiprocessing
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PROGRAMS, _TEST_PROCESSES = "TESTS_PYTHON", "TESTS_PYTHON_OF_TEST_PROCESSES"
_MAX_WAITING = 64
IS_POSSIBLE = hasattr(os, "pidfd_open")
"""Linux alone has it."""


@contextmanager
def python_commands(*stages: Sequence[str]) -> Generator[Sequence[str]]:
    """A command for each stage, whose processes have imported the modules of it and of those before.

    They are forks of a template, which ends with the block.
    """
    with tempfile.TemporaryDirectory(prefix="gwp-") as folder, ExitStack() as stack:
        commands, arguments, numbers = list[str](), list[str](), list[int]()
        for stage in stages:
            path = str(Path(folder) / f"socket{len(commands)}")
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            listener.bind(path)
            listener.listen(_MAX_WAITING)  # connections wait until the template has imported
            numbers.append(listener.fileno())
            arguments.append(f"{listener.fileno()}:{','.join(stage)}")
            client = [sys.executable, "-I", "-S", str(Path(__file__).with_name("forked_python.py")), path]
            command = Path(folder) / f"python{len(commands)}"
            command.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n')
            command.chmod(0o700)
            commands.append(str(command))
        template = [sys.executable, "-m", "tests.support.python_template", *arguments]
        child = subprocess.Popen(template, cwd=_ROOT, stdin=subprocess.PIPE, pass_fds=numbers)
        stack.close()
        try:
            yield commands
        finally:
            child.communicate()


@contextmanager
def offered_command() -> Generator[str | None]:
    """The command whose processes have imported the gateway and all tests; it is named to what starts in the block.

    So is another for programs, whose processes have imported the gateway alone. The commands that were offered to this
    process already, if any; None where it is not possible.
    """
    offered = os.environ.get(_TEST_PROCESSES)
    if offered or not IS_POSSIBLE:
        yield offered
        return
    with python_commands(["tests.support.gateway_imports"], ["tests.support.collected_modules"]) as commands:
        os.environ[_PROGRAMS], os.environ[_TEST_PROCESSES] = commands
        try:
            yield os.environ[_TEST_PROCESSES]
        finally:
            del os.environ[_PROGRAMS], os.environ[_TEST_PROCESSES]


def module_command(module: str, workers: str) -> list[str]:
    """The command that runs a module in a fork, whose workers are forked from that template; else in a new process."""
    if command := os.environ.get(_PROGRAMS):
        fork_workers = f"from tests.support.worker_starts import fork_from; fork_from(lambda: {workers!r})"
        run_module = f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        return [command, "-c", f"{fork_workers}; {run_module}"]
    return [sys.executable, "-m", module]


def use_command() -> None:
    """Let the server from which this process has replicas forked be started by the command, where there is one."""
    if command := os.environ.get(_PROGRAMS):
        multiprocessing.set_executable(command)
