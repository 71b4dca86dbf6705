"""Starts workers of gateways under test by forking them from a template, instead of importing for each."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from anyio.abc import Process

from gateway.sandbox import processes
from tests.support.worker_template import MODULES

_LAUNCHER = Path(__file__).with_name("worker_launcher.py")
_start = processes._start  # pyright: ignore[reportPrivateUsage]  # what it starts is replaced


def fork_from(template: Callable[[], str]) -> None:
    """Fork the gateway's own workers from the template at the socket given; other commands are started as they are."""
    if hasattr(os, "pidfd_open"):  # Linux alone has it
        processes._start = functools.partial(_start_forked, template)  # pyright: ignore[reportPrivateUsage]


def start_as_usual() -> None:
    """Start them as in production."""
    processes._start = _start  # pyright: ignore[reportPrivateUsage]


async def _start_forked(template: Callable[[], str], command: Sequence[str]) -> Process:
    *python, module = command
    is_ours = module in MODULES and python == [sys.executable, "-I", "-m"]
    return await _start([sys.executable, "-I", "-S", str(_LAUNCHER), template(), module] if is_ours else command)
