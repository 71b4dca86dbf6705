"""One answer as it comes: its head, and its body as far as it was not yet taken.

An answer holds its connection until whoever asked is done with it, so that nobody else is given the connection before.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from gateway.upstream.http.errors import Malformed

Pair = tuple[bytes, bytes]

_LISTS = frozenset({b"content-encoding", b"transfer-encoding"})
_BLANK = b" \t"
_BODILESS = frozenset({204, 304})


class ResponseSource(Protocol):
    """The connection that an answer comes on."""

    def resume(self) -> None:
        """Read on: there is room again."""

    def release(self, answer: "Response") -> None:
        """Nobody needs this answer any more."""

    def abort(self) -> None:
        """Close at once."""


class Response:
    """What one request gets (RFC 9112 section 6.3 says where it ends).

    `status` is 0 until the head is there.
    """

    __slots__ = (
        "_fields",
        "_line",
        "_pieces",
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

    def __init__(self, line: ResponseSource, waiter: "asyncio.Future[None]", *, has_no_body: bool) -> None:
        self._line: ResponseSource | None = line
        self._waiter = waiter
        self._fields: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._size = 0
        self.pairs: Sequence[Pair] = ()
        self.status = 0
        self.has_no_body = has_no_body
        self.has_ended = self.is_chunked = self.until_close = False
        self.fault: Exception | None = None

    @property
    def size(self) -> int:
        """The bytes of the body that wait to be taken."""
        return self._size

    @property
    def content_length(self) -> int | None:
        """The declared length, which the parser has found to be a number."""
        declared = self._fields.get(b"content-length")
        return None if declared is None else int(declared)

    def begin(self, status: int, pairs: Sequence[Pair]) -> None:
        """The head is there.

        Raises:
            Malformed: a transfer coding that was not offered, or several (RFC 9112 section 6.1).
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
            if coding.lower() != b"chunked":
                raise Malformed
            self.is_chunked = True
        self.has_no_body = self.has_no_body or status in _BODILESS
        self.until_close = coding is None and b"content-length" not in fields

    def add(self, piece: bytes) -> None:
        """The next bytes of the body."""
        self._pieces.append(piece)
        self._size += len(piece)

    def fail(self, fault: Exception) -> None:
        """There will not be more of it."""
        if not self.has_ended and self.fault is None:
            self.fault = fault
            self.wake()

    def wake(self) -> None:
        """Let whoever waits look again."""
        if not self._waiter.done():
            self._waiter.set_result(None)

    def field(self, name: bytes) -> str | None:
        """The value of the header of this name in lower case, the first where there are several, as ASCII."""
        value = self._fields.get(name)
        return None if value is None else value.decode() if value.isascii() else _ascii(value)

    def headers(self) -> tuple[tuple[str, str], ...]:
        """All of them as they came, as ASCII."""
        return tuple((_ascii(name), _ascii(value.strip(_BLANK))) for name, value in self.pairs)

    def at_eof(self) -> bool:
        """Whether all of the body was taken."""
        return self.has_ended and not self._pieces

    def take(self) -> bytes:
        """The bytes that are there.

        Raises:
            Fault: it broke off or is malformed, even if there are some.
        """
        if self.fault is not None:
            raise self.fault
        pieces = self._pieces
        self._pieces, self._size = [], 0
        if self._line is not None:
            self._line.resume()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def readany(self) -> bytes:
        """The bytes that are there, or else the next ones; none at the end.

        Raises:
            Fault: it broke off or is malformed.
        """
        while not self._pieces and not self.has_ended and self.fault is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.take()

    def release(self) -> None:
        """The connection may serve the next request if this answer was whole."""
        line, self._line = self._line, None
        if line is not None:
            line.release(self)

    def close(self) -> None:
        """Whatever is left of it, its connection is not used again."""
        line, self._line = self._line, None
        if line is not None:
            line.abort()


def _ascii(value: bytes) -> str:
    """A text without what is none, which no JSON could carry on."""
    if value.isascii():
        return value.decode("ascii")
    return value.decode("utf-8", "surrogateescape").encode("ascii", "replace").decode("ascii")
