"""HTTP/1.1 for the `httpx` clients of tests: uvicorn's parser on the event loop's own connections.

httpx's own transport takes 0.5 ms more of CPU for each request, a tenth of what the gateway takes to answer it. A test
that is about HTTP itself writes to a socket.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Any, cast

import httptools
import httpx

_MAX_WAITING_BYTES = 2**16
_NO_TIMEOUTS: dict[str, float | None] = {}


class LoopTransport(httpx.AsyncBaseTransport):
    """Connections of one client to plain HTTP servers, kept by address."""

    def __init__(self) -> None:
        self._idle: dict[tuple[str, int], list[_Connection]] = {}
        self._open = set[_Connection]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; the body of the response is read as it is asked for.

        Raises:
            httpx.TransportError: no connection, or it ended or was silent before the response began.
        """
        timeouts = request.extensions.get("timeout", _NO_TIMEOUTS)
        address = request.url.host, request.url.port or 80
        connection = await self._connect(address, timeouts)
        try:
            await connection.send(request)
            await connection.response_begun(timeouts.get("read"))
        except BaseException:
            connection.close()
            raise
        return httpx.Response(
            connection.status,
            headers=connection.headers,
            stream=_Body(connection, timeouts.get("read")),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": connection.reason},
        )

    async def aclose(self) -> None:
        """Close all connections."""
        for connection in [*self._open]:
            connection.close()

    async def _connect(self, address: tuple[str, int], timeouts: dict[str, float | None]) -> "_Connection":
        idle = self._idle.setdefault(address, [])
        while idle:
            connection = idle.pop()
            if not connection.is_closed:
                return connection
        try:
            async with asyncio.timeout(timeouts.get("connect")):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(idle, self._open), *address
                )
        except TimeoutError:
            raise httpx.ConnectTimeout("no connection in time") from None
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, which joins the idle ones of its address when a response has been read."""

    def __init__(self, idle: "list[_Connection]", opened: "set[_Connection]") -> None:
        self._idle = idle
        self._opened = opened
        self._parser: Any = None
        self._transport: asyncio.Transport | None = None
        self._failure: httpx.TransportError | None = None
        self._changed: asyncio.Future[None] | None = None
        self._chunks = deque[bytes]()
        self._waiting_bytes = 0
        self._is_paused = False
        self.is_closed = False
        self._begin("")

    def _begin(self, method: str) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._is_head = method == "HEAD"
        self._has_begun = False
        self._is_kept = False
        self.has_ended = False
        self.status = 0
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []

    async def send(self, request: httpx.Request) -> None:
        """Write a request; a body of unknown length is sent in chunks."""
        assert self._transport is not None
        self._begin(request.method)
        lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
        unsent = b"\r\n".join((*lines, *(b"%b: %b" % field for field in request.headers.raw), b"\r\n"))
        is_chunked = "transfer-encoding" in request.headers
        assert isinstance(request.stream, httpx.AsyncByteStream)
        async for chunk in request.stream:
            self._transport.write(unsent + (b"%x\r\n%b\r\n" % (len(chunk), chunk) if is_chunked else chunk))
            unsent = b""
        if is_chunked:
            unsent += b"0\r\n\r\n"
        if unsent:
            self._transport.write(unsent)

    async def response_begun(self, within_s: float | None) -> None:
        """Wait until status and headers are there."""
        while not self._has_begun:
            await self._wait(within_s)

    async def next_chunk(self, within_s: float | None) -> bytes:
        """The next part of the body; empty at its end."""
        while not self._chunks and not self.has_ended:
            await self._wait(within_s)
        if not self._chunks:
            return b""
        chunk = b"".join(self._chunks)
        self._chunks.clear()
        self._waiting_bytes = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return chunk

    def release(self) -> None:
        """Let another request have the connection, if the response was read whole and the server keeps it open."""
        if self.has_ended and not self._chunks and self._is_kept:
            if not self.is_closed:
                self._idle.append(self)
        else:
            self.close()

    def close(self) -> None:
        """Close it, whatever is under way."""
        self.is_closed = True
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self, within_s: float | None) -> None:
        if self._failure is not None:
            raise self._failure
        self._changed = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(within_s):
                await self._changed
        except TimeoutError:
            raise httpx.ReadTimeout("no answer in time") from None
        finally:
            self._changed = None

    def _notify(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._opened.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_closed = True
        self._opened.discard(self)
        if self._has_begun and exc is None and self._ends_with_connection:
            self.has_ended = True
        elif not self.has_ended:
            reason = "Server disconnected without sending a response." if exc is None else str(exc)
            self._failure = httpx.ReadError(reason) if exc is not None else httpx.RemoteProtocolError(reason)
        self._notify()

    @property
    def _ends_with_connection(self) -> bool:
        return not any(name.lower() in {b"content-length", b"transfer-encoding"} for name, _ in self.headers)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._failure = httpx.RemoteProtocolError(str(error))
            self.close()
        self._notify()

    def on_status(self, status: bytes) -> None:
        self.reason = status

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self._has_begun = True
            self.has_ended = self._is_head

    def on_body(self, body: bytes) -> None:
        self._chunks.append(body)
        self._waiting_bytes += len(body)
        if self._waiting_bytes > _MAX_WAITING_BYTES and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._has_begun:
            self.has_ended = True
            self._is_kept = self._parser.should_keep_alive()
        else:  # an informational response precedes the response
            self.headers = []


class _Body(httpx.AsyncByteStream):
    def __init__(self, connection: _Connection, within_s: float | None) -> None:
        self._connection = connection
        self._within_s = within_s
        self._is_released = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await self._connection.next_chunk(self._within_s):
            yield chunk

    async def aclose(self) -> None:
        if not self._is_released:
            self._is_released = True
            self._connection.release()
