"""Workers of gateways in this process are forked from a template; those of replicas start as in production."""

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from anyio.abc import Process

from gateway.sandbox import processes
from tests.support.worker_template import MODULES

_LAUNCHER = Path(__file__).with_name("worker_launcher.py")
_ROOT = Path(__file__).parents[2]
_start = processes._start  # pyright: ignore[reportPrivateUsage]  # what it starts is replaced


def fork_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the gateway's own workers by forking; other commands are started as they are."""
    monkeypatch.setattr(processes, "_start", _start_forked)


def start_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start them as in production."""
    monkeypatch.setattr(processes, "_start", _start)


async def _start_forked(command: Sequence[str]) -> Process:
    *python, module = command
    is_ours = module in MODULES and python == [sys.executable, "-I", "-m"]
    if not is_ours or not hasattr(os, "pidfd_open"):  # Linux alone has it
        return await _start(command)
    return await _start([sys.executable, "-I", "-S", str(_LAUNCHER), _template(), module])


@cache
def _template() -> str:
    """The socket of this process's template, which ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="gww-")
    path = str(Path(folder.name) / "socket")
    command = [sys.executable, "-m", "tests.support.worker_template", path]
    child = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.stdout.close()

    def end() -> None:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
        folder.cleanup()

    atexit.register(end)
    return path
