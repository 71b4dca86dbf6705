"""Warm child processes: started at the first request, reused by their owner, killed after anything irregular.

A process exchanges frames (`gateway.sandbox.frames`): one request, then one response. It serves a single owner, such as
a tenant, for its whole life, so that nothing of one owner can reach another. It is kept for the next request only if
the exchange was complete. It is killed if the request was cancelled, exceeded its time, or got a wrong response.

An idle process ends after `idle_s` seconds, or when another owner needs its place. Without an open block (`async with`)
no process is kept.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Self

import anyio
from anyio.abc import ByteSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.sandbox.frames import LENGTH_BYTES
from gateway.sandbox.limits import MAX_REQUESTS, MAX_RESPONSE_BYTES
from gateway.sandbox.processes import child, send_parts

_OVERSIZE: Final = 1
"""Status of a process that sends more; it is killed."""


class ChildEnded(Exception):
    """A process ended before it responded; a negative `status` is the signal that killed it, as in `subprocess`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process ended with status {status}")
        self.status = status


class WarmChildren:
    """The processes of one command; at most `limit` are idle or busy, while callers request at most `limit` at once."""

    def __init__(self, command: Sequence[str], *, limit: int, idle_s: float = 60.0) -> None:
        self._command = command
        self._limit = limit
        self._idle_s = idle_s
        self._tasks = TaskSupervisor()
        self._idle: list[_WarmChild] = []
        """Idle processes; the one that is idle for the longest time is the first."""
        self._busy = 0

    @property
    def idle(self) -> int:
        """Number of idle processes."""
        return len(self._idle)

    async def __aenter__(self) -> Self:
        self._tasks.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tasks.close()  # from now on no process is kept
        while self._idle:
            await self._withdraw(self._idle[0]).end()

    async def exchange(self, owner: str, *request: bytes) -> bytes:
        """Send the parts of one frame to a process of this owner, and return the content of its response.

        A process that served an earlier request and has ended since is replaced. Such a process closes its input or
        exits with status 0, without a response.

        Raises:
            ChildEnded: the process ended before it responded, or its response is too large.
        """
        while True:
            async with self._lease(owner) as process:
                try:
                    return await process.exchange(request)
                except ChildEnded as ended:
                    if ended.status or not process.is_reused:
                        raise

    @asynccontextmanager
    async def _lease(self, owner: str) -> AsyncGenerator["_WarmChild"]:
        """Hold a process for the block; it is kept afterwards if the exchange is complete, otherwise killed."""
        self._busy += 1
        try:
            process = await self._take(owner)
            try:
                yield process
            finally:
                # guard: warm-child-irregular
                if process.is_complete and process.requests < MAX_REQUESTS and self._tasks.is_open:
                    self._keep(process)
                else:
                    await process.end()
        finally:
            self._busy -= 1

    async def _take(self, owner: str) -> "_WarmChild":
        while own := self._idle_of(owner):
            if await self._withdraw(own).is_quiet():  # guard: warm-child-quiet
                return own
        while self._idle and len(self._idle) + self._busy > self._limit:
            await self._withdraw(self._idle[0]).end()
        return await _WarmChild.start(self._command, owner)

    def _idle_of(self, owner: str) -> "_WarmChild | None":
        return next((one for one in self._idle if one.owner == owner), None)  # guard: warm-child-owner

    def _keep(self, process: "_WarmChild") -> None:
        self._idle.append(process)
        process.expiry = asyncio.get_running_loop().call_later(self._idle_s, self._expire, process)

    def _withdraw(self, process: "_WarmChild") -> "_WarmChild":
        self._idle.remove(process)
        if process.expiry is not None:
            process.expiry.cancel()
        return process

    def _expire(self, process: "_WarmChild") -> None:
        if self._tasks.is_open:
            self._tasks.spawn(self._withdraw(process).end)


class _WarmChild:
    """One process with its pipes, and the number of its requests."""

    def __init__(
        self, owner: str, process: Process, stdin: ByteSendStream, responses: BufferedByteReceiveStream
    ) -> None:
        self.owner = owner
        self.requests = 0
        self.is_complete = True
        """True unless a request is without its response."""
        self.expiry: asyncio.TimerHandle | None = None
        self._process = process
        self._stdin = stdin
        self._responses = responses
        self._life = AsyncExitStack()

    @classmethod
    async def start(cls, command: Sequence[str], owner: str) -> "_WarmChild":
        async with AsyncExitStack() as life:
            process = await life.enter_async_context(child(command))
            if process.stdin is None or process.stdout is None:  # both are requested as pipes
                raise ChildEnded(_OVERSIZE)
            made = cls(owner, process, process.stdin, BufferedByteReceiveStream(process.stdout))
            made._life = life.pop_all()
            return made

    @property
    def is_reused(self) -> bool:
        """True if the process has served an earlier request."""
        return self.requests > 1

    async def exchange(self, request: Sequence[bytes]) -> bytes:
        """Send one frame and return the content of the response.

        Raises:
            ChildEnded: there is none, or it is larger than `MAX_RESPONSE_BYTES`.
        """
        self.requests += 1
        self.is_complete = False
        try:
            await send_parts(self._stdin, sum(map(len, request)).to_bytes(LENGTH_BYTES, "big"), *request)
            length = int.from_bytes(await self._responses.receive_exactly(LENGTH_BYTES), "big")
            if length > MAX_RESPONSE_BYTES:
                raise ChildEnded(_OVERSIZE)
            content = await self._responses.receive_exactly(length)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ChildEnded(await self._process.wait()) from None
        self.is_complete = True
        return content

    async def is_quiet(self) -> bool:
        """End the process and return False if it has closed its output, or has sent a byte without a request."""
        is_quiet = False
        try:
            with anyio.move_on_after(0) as scope, contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await self._responses.receive(1)
            is_quiet = scope.cancelled_caught  # there was nothing to receive
        finally:
            if not is_quiet:
                await self.end()
        return is_quiet

    async def end(self) -> None:
        """Kill the process, if it still runs, and close its pipes."""
        await self._life.aclose()
