"""Commands of the gateway that run to their end, each in a process forked from one that has everything imported.

Importing is most of what such a command does. One that goes on until it is stopped is started as a person starts it,
by whoever tests it, and so is each that is about starting.
"""

import json
import multiprocessing
import os
import runpy
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import anyio
import anyio.to_thread

_IMPORTED = (
    *("tenants", "keys", "sources", "tools", "resources", "prompts", "profiles", "credentials"),
    *("webhooks", "watches", "policies", "trail", "calling"),
)
"""The modules of commands that only ask a gateway; those that are one import ten times as much."""
_PATIENCE_S = 120
_one_by_one = threading.Lock()
"""Whoever starts a process looks how all others ended, and what one thread has read of that another cannot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that is over."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> object:
        """What it answered with --json."""
        loaded: object = json.loads(self.out)
        return loaded


async def run_gateway(
    arguments: Sequence[str], *, folder: Path, variables: Mapping[str, str], given: bytes = b""
) -> Ended:
    """What `python -m gateway` with these arguments does in this folder, with these variables and nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([f"gateway.cli.{name}" for name in _IMPORTED])
    with tempfile.TemporaryDirectory(prefix="gwc-") as scratch:
        streams = [Path(scratch) / name for name in ("in", "out", "err")]
        for stream, content in zip(streams, (given, b"", b""), strict=True):
            stream.write_bytes(content)
        child = context.Process(target=_become, args=(list(arguments), folder, dict(variables), streams))
        await anyio.to_thread.run_sync(_start, child)
        try:
            with anyio.fail_after(_PATIENCE_S):
                await anyio.to_thread.run_sync(_await_end, child, abandon_on_cancel=True)
        finally:
            with _one_by_one:
                if child.is_alive():
                    child.kill()
        _, out, err = (stream.read_text() for stream in streams)
    assert child.exitcode is not None
    return Ended(code=child.exitcode, out=out, err=err)


def _start(child: BaseProcess) -> None:
    with _one_by_one:
        child.start()


def _await_end(child: BaseProcess) -> None:
    wait([child.sentinel])
    with _one_by_one:
        child.join()


def _become(arguments: Sequence[str], folder: Path, variables: Mapping[str, str], streams: Sequence[Path]) -> None:
    """Turn this fresh fork into the command."""
    for number, stream in enumerate(streams):
        opened = os.open(stream, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  # multiprocessing has put another in its place
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    sys.argv = ["gateway", *arguments]
    runpy.run_module("gateway", run_name="__main__", alter_sys=True)
