"""The open event streams of this replica; each is an unfinished response to one client.

A stream buffers no messages: a wake-up signals that there may be some, and the stream's task reads them from their
store. `OpenStreams` ends a stream when its key changes, its tenant is removed or the replica stops. A disconnect of the
client ends it as well. An ended stream finishes its HTTP response, unless its task failed.
"""

import asyncio
import time
from collections.abc import Callable

from starlette.types import Message, Receive, Send

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.principals import Principal
from gateway.errors import Unavailable
from gateway.protocol.http.limits import KEEP_ALIVE_S, STOPPING_RETRY_S
from gateway.protocol.http.responses import Body, Headers, send_response
from gateway.protocol.http.sse_encoding import HEADERS, PING
from gateway.redis.limits.stream_limiter import StreamLimiter


class EventStream:
    """One unfinished response; without `receive`, a disconnect of its client is not detected."""

    __slots__ = ("_alarm", "_is_woken", "_keep_alive_s", "_receive", "_send", "_written_at", "is_over", "principal")

    def __init__(
        self,
        send: Send,
        principal: Principal,
        *,
        receive: Receive | None = None,
        keep_alive_s: float = KEEP_ALIVE_S,
    ) -> None:
        self.principal = principal
        self.is_over = False
        self._send = send
        self._receive = receive or _silence
        self._keep_alive_s = keep_alive_s
        self._written_at = time.monotonic()
        self._alarm: asyncio.Timeout | None = None
        self._is_woken = False

    def wake(self) -> None:
        """Wake the stream's task, because there may be something to send."""
        self._is_woken = True
        if self._alarm is not None and not self._alarm.expired():
            self._alarm.reschedule(0)

    def end(self) -> None:
        """Mark the stream as over and wake its task."""
        self.is_over = True
        self.wake()

    async def answer(self, body: Body, headers: Headers) -> None:
        """Send a JSON response instead of events; nothing can be sent after it."""
        await send_response(self._send, 200, body, headers=headers)

    async def acknowledge(self, headers: Headers) -> None:
        """Respond 202 without a body."""
        await send_response(self._send, 202, headers=headers)

    async def begin(self, headers: Headers) -> None:
        """Start a response with events."""
        await self._send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, *headers]})

    async def write(self, chunk: bytes) -> None:
        """Send encoded events; waits while the client does not read."""
        if chunk:
            self._written_at = time.monotonic()
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def finish(self) -> None:
        """End the response properly."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for a wake-up for at most `seconds`; True if there was one. `end` and a disconnect also wake.

        A keep-alive is sent if the stream was silent for `keep_alive_s`. The same task also waits for the client's
        disconnect, so an idle stream is one sleeping task.
        """
        quiet = self._written_at + self._keep_alive_s - time.monotonic()
        is_quiet = seconds is None or quiet <= seconds
        if not self._is_woken:
            try:
                async with asyncio.timeout(quiet if is_quiet else seconds) as self._alarm:
                    await self._await_end()
            except TimeoutError:
                pass
            finally:
                self._alarm = None
        was_woken, self._is_woken = self._is_woken, False
        if is_quiet and not was_woken:  # the clock is not read again: timeouts may fire slightly early
            await self.write(PING)
        return was_woken

    async def _await_end(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.is_over = self._is_woken = True


async def _silence() -> Message:
    """A `receive` that never returns, for a stream without a disconnect watcher."""
    silence: Message = await asyncio.get_running_loop().create_future()
    return silence


class OpenStreams:
    """The open streams of this replica; each takes a slot that is counted across all replicas."""

    def __init__(self, limiter: StreamLimiter, *, keep_alive_s: float = KEEP_ALIVE_S) -> None:
        self._limiter = limiter
        self._keep_alive_s = keep_alive_s
        self._open: dict[EventStream, str] = {}
        self._is_closing = False

    def __len__(self) -> int:
        """Number of open streams."""
        return len(self._open)

    async def open(self, send: Send, receive: Receive, principal: Principal, *, cap: int) -> EventStream:
        """Open a stream until `close`; a disconnect of its client marks it as over.

        Raises:
            LimitExceeded: the tenant or the key has reached its cap of open streams.
            Unavailable: this replica is shutting down.
        """
        slot = await self._limiter.acquire(principal.tenant, principal.key, cap)
        stream = EventStream(send, principal, receive=receive, keep_alive_s=self._keep_alive_s)
        self._open[stream] = slot
        if self._is_closing:
            await self.close(stream)
            raise Unavailable("this replica is shutting down", retry_after_s=STOPPING_RETRY_S)
        return stream

    async def close(self, stream: EventStream) -> None:
        """Remove a stream and release its slot."""
        principal = stream.principal
        await self._limiter.release(principal.tenant, principal.key, self._open.pop(stream))

    def untracked(self, send: Send, principal: Principal) -> EventStream:
        """A stream for a single request; it takes no slot, and neither `end` nor `end_all` ends it."""
        return EventStream(send, principal, keep_alive_s=self._keep_alive_s)

    def end_tenant(self, tenant: TenantId) -> None:
        """End the streams of a tenant."""
        self.end(lambda principal: principal.tenant == tenant)

    def end(self, is_over: Callable[[Principal], bool]) -> None:
        """End the streams of some principals."""
        for stream in tuple(self._open):
            if is_over(stream.principal):
                stream.end()

    def end_all(self) -> None:
        """End all streams except the untracked ones, and refuse new ones."""
        self._is_closing = True
        for stream in tuple(self._open):
            stream.end()
