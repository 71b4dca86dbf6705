"""A cancel scope that is cancelled when the client disconnects.

The disconnect watcher is a task that starts only after `WATCH_AFTER_S`. One timer serves all requests, because a timer
of each would cost 5 µs.
"""

import asyncio
from types import TracebackType
from typing import Self

from starlette.types import Receive

from gateway.domain.fairness.cancel_scope import CancelScope
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.protocol.http.limits import WATCH_AFTER_S


class CancelOnDisconnect(CancelScope):
    """A cancel scope that is cancelled when the client disconnects; `DisconnectWatch` makes it."""

    __slots__ = ("_receive", "_watch")

    def __init__(self, receive: Receive, watch: "DisconnectWatch") -> None:
        super().__init__()
        self._receive = receive
        self._watch = watch

    def __enter__(self) -> Self:
        self._watch.add(self, self._loop)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._watch.discard(self)
        return super().__exit__(kind, error, trace)

    async def watch(self) -> None:
        """Cancel on a disconnect. After the response the server reports one too, without effect."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.cancel()


class DisconnectWatch:
    """Starts the watcher of each request that is still open after `WATCH_AFTER_S`."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._due: dict[CancelOnDisconnect, float] = {}
        """The open requests without a watcher, oldest first, each with the time at which its watcher starts."""
        self._timer: asyncio.TimerHandle | None = None

    def scope(self, receive: Receive) -> CancelOnDisconnect:
        """Return the cancel scope of a request."""
        return CancelOnDisconnect(receive, self)

    def add(self, scope: CancelOnDisconnect, loop: asyncio.AbstractEventLoop) -> None:
        """Start the watcher of this request after `WATCH_AFTER_S`."""
        self._due[scope] = loop.time() + WATCH_AFTER_S
        if self._timer is None:
            self._timer = loop.call_later(WATCH_AFTER_S, self._start_due, loop)

    def discard(self, scope: CancelOnDisconnect) -> None:
        """Start no watcher for this request."""
        self._due.pop(scope, None)

    def _start_due(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer = loop.time(), None
        while self._due:
            scope, at = next(iter(self._due.items()))
            if at > now:
                self._timer = loop.call_at(at, self._start_due, loop)
                return
            del self._due[scope]
            self._spawn(scope.watch)
