"""Closing a connection whose request body is still arriving, so that the client receives the response.

If a socket is closed while unread bytes wait in it, the kernel resets the connection, and the client may lose a
response that it has not read yet. So the rest is read and discarded, until the client closes, stops sending, or the
time is over (RFC 9112 section 9.6).
"""

import asyncio


class LingeringClose:
    """Closes the transport once the client has been silent for `idle_s` seconds, or `total_s` seconds have passed."""

    __slots__ = ("_end", "_idle", "_idle_s", "_loop", "_transport")

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        *,
        idle_s: float,
        total_s: float,
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._idle_s = idle_s
        self._end = loop.call_later(total_s, transport.close)  # guard: lingering-end
        self._idle = loop.call_later(idle_s, transport.close)

    def discard(self) -> None:
        """Note that bytes arrived, which are not kept."""
        self._idle.cancel()
        self._idle = self._loop.call_later(self._idle_s, self._transport.close)

    def stop(self) -> None:
        """Cancel the timers, because the connection is closed."""
        self._idle.cancel()
        self._end.cancel()
