"""Removal of stale processes: servers of a crashed gateway that still use the data directory, and their pid files.

The caller holds the lock of the state directory, so these processes do not belong to another running gateway.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

from gateway.embedded.limits import STOP_TIMEOUT_S
from gateway.errors import EmbeddedServerFailed


async def end_stale_processes(program: str, folder: Path, pid_file: Path, signals: Sequence[signal.Signals]) -> None:
    """Stop every process of this program that works in the folder, then remove the pid file.

    The pid file is removed because PostgreSQL refuses to start if an unrelated process now has the id in it. A process
    that does not end within 10 s of SIGKILL is ignored.

    Raises:
        EmbeddedServerFailed: a process belongs to another user.
    """
    for number in (*signals, signal.SIGKILL):
        for pid in _pids(program, folder):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError:
                raise EmbeddedServerFailed(
                    f"A {program} of an earlier run (process {pid}) still uses {folder} as another user: stop it."
                ) from None
        with anyio.move_on_after(STOP_TIMEOUT_S):
            while _pids(program, folder):  # noqa: ASYNC110  # the end of another process causes no notification
                await anyio.sleep(0.02)
            break
    _forget(pid_file)


def _forget(pid_file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        pid_file.unlink()


def _pids(program: str, folder: Path) -> list[int]:
    """Return the ids of processes of this program that work in the folder.

    On Linux, the working directory is compared, because both servers change into their data directory. Elsewhere, the
    command line must contain the program and the folder.
    """
    if not folder.exists():
        return []
    if sys.platform == "linux":
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _works_in(entry, program, folder)]  # noqa: PTH208
    output = subprocess.run(["/bin/ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False)
    lines = (line.split(None, 1) for line in output.stdout.splitlines())
    return [int(line[0]) for line in lines if len(line) > 1 and program in line[1] and str(folder) in line[1]]


def _works_in(pid: str, program: str, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == f"{program}\n" and Path(f"/proc/{pid}/cwd").samefile(folder)
    except OSError:
        return False
