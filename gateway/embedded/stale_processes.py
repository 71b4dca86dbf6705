"""Removal of stale processes: servers of a crashed gateway that still use the data folder, and their pid files.

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

from gateway.errors import EmbeddedServerFailed

_STOP_TIMEOUT_S = 10.0


async def end_stale_processes(program: str, folder: Path, pid_file: Path, signals: Sequence[signal.Signals]) -> None:
    """Stop every process of this program that works in the folder, then remove the pid file.

    PostgreSQL refuses to start if another process now has the number in an old pid file. A process that SIGKILL does
    not end within 10 s is ignored.

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
        with anyio.move_on_after(_STOP_TIMEOUT_S):
            while _pids(program, folder):  # noqa: ASYNC110  # another process does not notify us when it ends
                await anyio.sleep(0.02)
            break
    _forget(pid_file)


def _forget(pid_file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        pid_file.unlink()


def _pids(program: str, folder: Path) -> list[int]:
    """Return the ids of processes of this program that work in the folder.

    On Linux, that is their working directory: both servers change into their data folder. Elsewhere, the command line
    contains both names.
    """
    if not folder.exists():
        return []
    if sys.platform == "linux":
        return [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and _works_in(entry, program, folder)]  # noqa: PTH208
    shown = subprocess.run(["/bin/ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False)
    lines = (line.split(None, 1) for line in shown.stdout.splitlines())
    return [int(line[0]) for line in lines if len(line) > 1 and program in line[1] and str(folder) in line[1]]


def _works_in(pid: str, program: str, folder: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == f"{program}\n" and Path(f"/proc/{pid}/cwd").samefile(folder)
    except OSError:
        return False
