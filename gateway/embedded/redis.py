"""Embedded Redis with an append-only file, which is synced once a second and at the stop."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.embedded.binaries import redis_program
from gateway.embedded.child import Child
from gateway.embedded.limits import CONNECT_TIMEOUT_S
from gateway.embedded.stale_processes import end_stale_processes
from gateway.embedded.state_directory import StateDirectory
from gateway.embedded.supervisor import Watched
from gateway.errors import EmbeddedServerFailed

_STOP_SIGNALS = (signal.SIGTERM,)


def socket_path(folders: StateDirectory) -> Path:
    """Return the path of the Redis socket."""
    return folders.sockets / "redis.sock"


@asynccontextmanager
async def running_redis(folders: StateDirectory) -> AsyncGenerator[Watched]:
    """Run Redis for as long as the block runs.

    Raises:
        EmbeddedServerFailed: Redis is not installed or did not start, or a stale server cannot be stopped.
    """
    program = await run_in_thread(OWN_PROGRAMS, "", redis_program)
    pid_file = folders.root / "redis.pid"
    await end_stale_processes("redis-server", folders.redis, pid_file, _STOP_SIGNALS)
    socket = socket_path(folders)
    command: list[str | Path] = [program, "--port", "0", "--unixsocket", socket, "--unixsocketperm", "700"]
    command += ["--dir", folders.redis, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec"]
    command += ["--daemonize", "no", "--pidfile", pid_file]
    server = Child(name="redis-server", command=command, log=folders.log("redis"), stop_signals=_STOP_SIGNALS)

    async def start() -> None:
        server.start()
        await _until_ready(server, socket)

    try:
        await start()
        yield Watched(child=server, revive=start)
    finally:
        await server.stop()


async def _until_ready(server: Child, socket: Path) -> None:
    with anyio.move_on_after(CONNECT_TIMEOUT_S):
        while server.is_running:
            try:
                async with await anyio.connect_unix(socket) as stream:
                    await stream.send(b"PING\r\n")
                    if (await stream.receive()).startswith(b"+PONG"):
                        return
            except (OSError, anyio.EndOfStream, anyio.BrokenResourceError):
                pass
            await anyio.sleep(0.005)
        raise server.failed()
    raise EmbeddedServerFailed(f"Redis did not respond within {CONNECT_TIMEOUT_S:.0f} seconds: {server.tail()}")
