"""A response in progress: its head, and the received part of the body that the caller has not read.

The connection serves no other request until the caller releases the response.
"""

import asyncio
from collections.abc import KeysView, Sequence
from typing import Protocol

from gateway.upstream.http.errors import Malformed

Pair = tuple[bytes, bytes]

_LISTS = frozenset({b"content-encoding", b"transfer-encoding", b"link"})
_BLANK = b" \t"
_BODILESS = frozenset({204, 304})


class ResponseSource(Protocol):
    """The connection that receives a response."""

    def resume(self) -> None:
        """Resume reading from the socket after the buffered bytes were taken."""

    def release(self, response: "Response") -> None:
        """Return the connection after the caller has finished with the response."""

    def abort(self) -> None:
        """Close the connection at once."""


class Response:
    """The response to one request (RFC 9112 section 6.3 defines its end).

    `status` is 0 until the head has arrived.
    """

    __slots__ = (
        "_chunks",
        "_connection",
        "_fields",
        "_size",
        "_waiter",
        "fault",
        "has_ended",
        "has_no_body",
        "is_chunked",
        "pairs",
        "status",
        "until_close",
    )

    def __init__(self, connection: ResponseSource, waiter: "asyncio.Future[None]", *, has_no_body: bool) -> None:
        self._connection: ResponseSource | None = connection
        self._waiter = waiter
        self._fields: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self._size = 0
        self.pairs: Sequence[Pair] = ()
        self.status = 0
        self.has_no_body = has_no_body
        self.has_ended = self.is_chunked = self.until_close = False
        self.fault: Exception | None = None

    @property
    def size(self) -> int:
        """Number of buffered body bytes."""
        return self._size

    @property
    def content_length(self) -> int | None:
        """The Content-Length, which the parser has validated."""
        declared = self._fields.get(b"content-length")
        return None if declared is None else int(declared)

    def begin(self, status: int, pairs: Sequence[Pair]) -> None:
        """Store the head.

        Raises:
            Malformed: the transfer coding is not a single `chunked` (RFC 9112 section 6.1).
        """
        fields = self._fields
        for name, value in pairs:
            lower = name.lower()
            if lower not in fields:
                fields[lower] = value.strip(_BLANK)
            elif lower in _LISTS:
                fields[lower] += b", " + value
        self.pairs = pairs
        self.status = status
        coding = fields.get(b"transfer-encoding")
        if coding is not None:
            if coding.lower() != b"chunked":  # guard: answer-codings
                raise Malformed
            self.is_chunked = True
        self.has_no_body = self.has_no_body or status in _BODILESS
        self.until_close = coding is None and b"content-length" not in fields

    def add(self, chunk: bytes) -> None:
        """Append the next bytes of the body."""
        self._chunks.append(chunk)
        self._size += len(chunk)

    def fail(self, fault: Exception) -> None:
        """End an unfinished response with a fault."""
        if not self.has_ended and self.fault is None:
            self.fault = fault
            self.wake()

    def wake(self) -> None:
        """Wake the waiting task, which checks the state again."""
        if not self._waiter.done():
            self._waiter.set_result(None)

    def field(self, name: bytes) -> str | None:
        """Return the header with this lower-case name as ASCII.

        If the header is repeated, this is the first value, except that content and transfer codings are joined.
        """
        value = self._fields.get(name)
        return None if value is None else value.decode() if value.isascii() else _ascii(value)

    @property
    def names(self) -> KeysView[bytes]:
        """The lower-case names of the headers."""
        return self._fields.keys()

    def headers(self) -> tuple[tuple[str, str], ...]:
        """All headers in received order, as ASCII."""
        return tuple((_ascii(name), _ascii(value.strip(_BLANK))) for name, value in self.pairs)

    def at_eof(self) -> bool:
        """True if the response has ended and its whole body was taken."""
        return self.has_ended and not self._chunks

    def take(self) -> bytes:
        """Return and clear the buffered bytes.

        Raises:
            TransportFault: the response was cut short or is malformed, even if some bytes have arrived.
        """
        if self.fault is not None:
            raise self.fault
        chunks = self._chunks
        self._chunks, self._size = [], 0
        if self._connection is not None:
            self._connection.resume()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def readany(self) -> bytes:
        """Return the buffered bytes, waiting for some if necessary; empty at the end.

        Raises:
            TransportFault: the response was cut short or is malformed.
        """
        while not self._chunks and not self.has_ended and self.fault is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.take()

    def release(self) -> None:
        """Return the connection to its owner, which closes it unless it can be reused."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.release(self)

    def close(self) -> None:
        """Close the connection, even if the response is incomplete."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()


def _ascii(value: bytes) -> str:
    """Decode a header as ASCII; other bytes become `?`, because they may be invalid in JSON."""
    if value.isascii():
        return value.decode("ascii")
    return value.decode("utf-8", "surrogateescape").encode("ascii", "replace").decode("ascii")
