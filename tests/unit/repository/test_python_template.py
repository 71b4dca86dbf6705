"""A fork of the template is a process like one of `python -c`."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.python_command import IS_POSSIBLE, python_commands

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="this system has no pidfd_open")
REPORT = """
import os, sys
print(sys.argv[1:], os.environ["CASE"], os.getcwd(), os.read(int(sys.argv[1]), 9), "shlex" in sys.modules, flush=True)
sys.stderr.write("said")
sys.exit(int(sys.stdin.read()))
"""
LIST = """
import os
print([number for number in range(3, 1000) if os.path.exists(f"/proc/self/fd/{number}")])
"""
WAIT = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"


def test_a_fork_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Ours: arguments, variables, folder, open files, exit status; neither it nor its command outlives the other."""
    reader, writer = os.pipe()
    os.write(writer, b"passed on")
    with python_commands(["tests.support.no_such_module", "shlex"]) as (python,):
        ran = subprocess.run(
            [python, "-u", "-c", REPORT, str(reader), "-x"],
            cwd=tmp_path,
            env={**os.environ, "CASE": "ä"},
            pass_fds=[reader],
            input=b"3",
            capture_output=True,
            timeout=60,
            check=False,
        )
        reported = f"{[str(reader), '-x']} ä {tmp_path} {b'passed on'!r} True\n"
        assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (3, reported, b"said")

        for killed, status in (("fork", 128 + signal.SIGKILL), ("command", -signal.SIGKILL)):
            with subprocess.Popen([python, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as command:
                assert command.stdout is not None
                fork = int(command.stdout.readline())
                assert fork != command.pid
                os.kill(fork if killed == "fork" else command.pid, signal.SIGKILL)
                assert command.stdout.read() == b""  # both have closed it
                assert command.wait(60) == status
    os.close(reader)
    os.close(writer)


def test_only_its_own_files_are_open() -> None:
    """Ours: a fork has no connection of another one, nor the template's."""
    with python_commands([], []) as (python, _):
        for _ in range(2):
            waiting = subprocess.Popen([python, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert waiting.stdout is not None
            assert waiting.stdout.readline()
            ran = subprocess.run([python, "-c", LIST], capture_output=True, timeout=60, check=True)
            assert ran.stdout == b"[]\n"
            waiting.communicate()


def test_a_fork_has_imported_the_modules_of_its_stage_and_of_those_before() -> None:
    """Ours: a program is not forked from the memory of all tests, which would cost it tens of milliseconds."""
    list_modules = "import sys; print(*sorted({'colorsys', 'sched', 'wave'} & {*sys.modules}))"
    with python_commands(["colorsys"], ["wave", "sched"]) as commands:
        for python, found in zip(commands, (b"colorsys\n", b"colorsys sched wave\n"), strict=True):
            ran = subprocess.run([python, "-c", list_modules], capture_output=True, timeout=60, check=True)
            assert ran.stdout == found
