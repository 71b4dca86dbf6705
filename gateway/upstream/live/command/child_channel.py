"""Channel to a child process that speaks MCP on its standard streams, with one message of limited size per line.

The child has its own session and process group, limits on memory and open files, and its own environment. It has the
gateway account's access to network and file system. It is killed when the channel closes or the gateway ends.
"""

import asyncio
import contextlib
import ctypes
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import structlog

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.live.command.limits import MAX_FILES, MAX_LOGGED_LENGTH, MAX_LOGGED_PIECES, MEMORY_BYTES, STOP_S
from gateway.upstream.live.mcp.limits import MAX_MESSAGE_BYTES
from gateway.upstream.live.mcp.messages import show

log = structlog.get_logger(__name__)

_SET_DEATH_SIGNAL = 1
_IS_LINUX = os.uname().sysname == "Linux"
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class ChildChannel:
    """The standard streams of one running child."""

    def __init__(self, process: asyncio.subprocess.Process, tenant: TenantId, name: str) -> None:
        self._process = process
        self.tenant = tenant
        self._name = name
        self._logging = asyncio.get_running_loop().create_task(self._log())

    @classmethod
    async def start(cls, argv: Sequence[str], env: Mapping[str, str], *, tenant: TenantId, name: str) -> Self:
        """Start the program, without a shell.

        Raises:
            LiveSourceFailed: the program cannot be started.
        """
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                limit=MAX_MESSAGE_BYTES,
                cwd="/",
                # guard: live-command-environment
                env={"PATH": os.environ.get("PATH", _DEFAULT_PATH), **env},
                start_new_session=True,
                preexec_fn=_restrict(),  # safe after fork: takes no lock
            )
        )
        try:
            process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(_kill_started)
            raise
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise LiveSourceFailed(
                f"the program {show(argv[0], 100)!r} cannot be started: {show(str(error))}"
            ) from None
        return cls(process, tenant, name)

    async def send(self, raw: bytes) -> None:
        """Write one line.

        Raises:
            LiveSourceFailed: the program has closed its input.
        """
        stdin = self._process.stdin
        try:
            if stdin is not None:
                stdin.write(raw + b"\n")
                await stdin.drain()
        except (ConnectionError, RuntimeError):
            raise LiveSourceFailed("the program closed its standard input") from None

    async def receive(self) -> bytes | None:
        """Return the next line that is not empty; None at the end.

        Raises:
            LiveSourceFailed: the line is too long.
        """
        stdout = self._process.stdout
        while stdout is not None:
            try:
                line = await stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError:  # guard: live-line-length
                raise LiveSourceFailed(f"the program wrote a line of more than {MAX_MESSAGE_BYTES:,} bytes") from None
            if raw := line.strip():
                return raw
        return None

    async def close(self) -> None:
        """Close the input, wait a second for the program to end, and kill the rest of its process group."""
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_S):
                    await process.wait()
        finally:
            _kill_group(process.pid)
            self._logging.cancel()
        await asyncio.gather(process.wait(), self._logging, return_exceptions=True)

    async def _log(self) -> None:
        """Log the first lines of standard error; read and discard the rest."""
        stderr, count = self._process.stderr, 0
        while stderr is not None and (piece := await stderr.read(MAX_LOGGED_LENGTH)):
            count += 1
            if count <= MAX_LOGGED_PIECES:
                text = show(piece.decode("utf-8", "replace").strip(), MAX_LOGGED_LENGTH)
                log.info("live_command_wrote", tenant_id=self.tenant, live_source=self._name, text=text)


def _kill_started(starting: "asyncio.Future[asyncio.subprocess.Process]") -> None:
    if not starting.cancelled() and starting.exception() is None:
        _kill_group(starting.result().pid)


def _kill_group(group: int) -> None:
    """Kill the child's process group, including its children."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _restrict() -> Callable[[], None]:
    """Return a hook that sets limits in the child, and on Linux its termination with the gateway."""
    prctl = ctypes.CDLL(None).prctl if _IS_LINUX else None
    parent = os.getpid()
    limits = {resource.RLIMIT_AS: MEMORY_BYTES, resource.RLIMIT_NOFILE: MAX_FILES, resource.RLIMIT_CORE: 0}
    wanted = [
        (kind, min(hard_limit, value)) for kind, value in limits.items() if (hard_limit := _hard_limit(kind)) >= 0
    ]

    def restrict() -> None:
        for kind, value in wanted:
            resource.setrlimit(kind, (value, value))
        if prctl is not None:
            prctl(_SET_DEATH_SIGNAL, signal.SIGKILL.value)
            if os.getppid() != parent:
                os._exit(1)

    return restrict


def _hard_limit(kind: int) -> int:
    hard_limit = resource.getrlimit(kind)[1]
    return sys.maxsize if hard_limit == resource.RLIM_INFINITY else hard_limit
