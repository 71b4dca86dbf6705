"""Child processes that work for this replica: started with no environment and no open file, killed with their group.

The parent bounds the wall time; the child bounds its own memory and CPU time first of all (`gateway.sandbox.limits`).
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteSendStream, Process

_ENVIRONMENT: Mapping[str, str] = {"LANG": "C.UTF-8"}
_CHUNK = 256 * 1024


@asynccontextmanager
async def child(command: Sequence[str]) -> AsyncGenerator[Process]:
    """A new process for as long as the block runs; afterwards it is gone, whatever state it was in."""
    process = await _start(command)
    try:
        yield process
    finally:
        await _end(process)


async def send_all(stream: ByteSendStream, *parts: bytes) -> None:
    """Write these bytes in chunks and close; a child that ends early is no error, its exit status says why."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        for part in parts:
            view = memoryview(part)
            for start in range(0, len(view), _CHUNK):
                await stream.send(bytes(view[start : start + _CHUNK]))
        await stream.aclose()


async def _start(command: Sequence[str]) -> Process:
    """A new process with nothing of ours."""
    started: list[Process] = []
    with anyio.CancelScope(shield=True):  # a start that is cancelled half-way would leave the process alone
        process = await anyio.open_process(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=_ENVIRONMENT,
            start_new_session=True,
        )
        started.append(process)
    return started[0]


async def _end(process: Process) -> None:
    with anyio.CancelScope(shield=True):
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()
