"""Sandboxed child processes: started without the replica's environment, killed with their process group.

The caller limits the wall time. The child first closes inherited files, and limits its memory and CPU time
(`gateway.sandbox.rlimits`).
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import ByteSendStream, Process

from gateway.sandbox.limits import CHUNK_BYTES

_ENVIRONMENT: Mapping[str, str] = {"LANG": "C.UTF-8"}


@asynccontextmanager
async def child(command: Sequence[str]) -> AsyncGenerator[Process]:
    """Start a process for the block; afterwards it is killed if it still runs, and its pipes are closed."""
    process = await _start(command)
    try:
        yield process
    finally:
        await _end(process)


async def send_all(stream: ByteSendStream, *parts: bytes) -> None:
    """Write these bytes in chunks and close the stream. A child that ends early raises nothing: see its exit status."""
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await send_parts(stream, *parts)
        await stream.aclose()


async def send_parts(stream: ByteSendStream, *parts: bytes) -> None:
    """Write these bytes in chunks.

    Raises:
        BrokenResourceError, ClosedResourceError: the child has ended.
    """
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), CHUNK_BYTES):
            await stream.send(bytes(view[start : start + CHUNK_BYTES]))


async def _start(command: Sequence[str]) -> Process:
    """Start a process in its own session, without the replica's environment."""
    started: list[Process] = []
    with anyio.CancelScope(shield=True):  # a cancelled start would leave a process without a parent
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
