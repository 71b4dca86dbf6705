"""Stale processes of a crashed gateway: servers that still run on our data, or pid files that are no longer true.

The folder's lock is held during the check, so no process that is found belongs to a running gateway.
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

_PATIENCE_S = 10.0


async def end_stale_processes(program: str, folder: Path, pid_file: Path, signals: Sequence[signal.Signals]) -> None:
    """Stop every process of this program that works in the folder, then remove a pid file that is no longer true.

    PostgreSQL believes a wrong pid file when any other process has the number meanwhile, so the file must be removed.

    Raises:
        EmbeddedServerFailed: a process cannot be stopped.
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
        with anyio.move_on_after(_PATIENCE_S):
            while _pids(program, folder):  # noqa: ASYNC110  # another process does not notify us when it ends
                await anyio.sleep(0.02)
            break
    _forget(pid_file)


def _forget(pid_file: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        pid_file.unlink()


def _pids(program: str, folder: Path) -> list[int]:
    """Process ids of this program in this folder; both servers change into their data folder and stay there."""
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
