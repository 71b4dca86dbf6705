"""Decompression of gzip and deflate response bodies within limits.

The limits are input bytes, output bytes, compression ratio and number of gzip members. The compressed stream must end
with the body.
"""

import zlib
from collections.abc import Sequence
from typing import Protocol

from gateway.errors import UpstreamAnswerBroken, UpstreamAnswerTooLarge

ACCEPTED = "gzip, deflate"

_IDENTITY_ENCODINGS = frozenset(("", "identity"))
_RATIO = 100
_RATIO_FROM = 1 << 20
"""The ratio is checked only above this output size; small repetitive JSON compresses that well."""
_MEMBERS = 1_000
_PIECE = 1 << 18
"""Maximum output bytes per step, so that the limits are checked between steps."""
_OVERHEAD = 1 << 10
"""Allowance for the encoding overhead of incompressible bodies, in addition to 1 % of the limit."""
_GZIP = 31
_ZLIB = 15
_RAW = -15
_MAGIC = b"\x1f\x8b"


class _Stream(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def unconsumed_tail(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes: ...


def open_inflater(encodings: Sequence[str], *, limit: int) -> "Inflater | None":
    """Return the inflater for these content encodings; None for an unencoded body.

    Raises:
        UpstreamAnswerBroken: the encoding is not gzip or deflate, or several are combined.
    """
    names = [name for text in encodings for name in text.split(",") if name.strip().lower() not in _IDENTITY_ENCODINGS]
    return Inflater(",".join(names), limit=limit) if names else None


class Inflater:
    """Incremental decompressor of one body; raises before it returns more than `limit` bytes in total.

    Raises:
        UpstreamAnswerBroken: the encoding is not gzip or deflate.
    """

    def __init__(self, encoding: str, *, limit: int) -> None:
        name = encoding.strip().lower()
        if name not in {"gzip", "x-gzip", "deflate"}:
            raise UpstreamAnswerBroken(
                "The upstream's response has a content encoding that the request did not accept."
            )
        self._is_gzip = name != "deflate"
        self._limit = limit
        self._max_input = limit + limit // 100 + _OVERHEAD
        self._pieces: list[bytes] = []
        self._out = 0
        self._in = 0
        self._is_full = False
        self._members = 0
        self._head = b""
        self._stream: _Stream | None = zlib.decompressobj(_GZIP) if self._is_gzip else None

    @property
    def size(self) -> int:
        """Number of decompressed bytes."""
        return self._out

    def feed(self, data: bytes) -> None:
        """Decompress the next chunk of the body.

        Raises:
            UpstreamAnswerTooLarge: the result exceeds the limit or the ratio.
            UpstreamAnswerBroken: the chunk is not in the declared encoding, or follows the end of the stream.
        """
        self._in += len(data)
        if self._in > self._max_input:  # empty compressed blocks could otherwise continue until the deadline
            raise UpstreamAnswerTooLarge("The upstream's compressed response is larger than a result may be.")
        if self._stream is None:  # `deflate` is zlib or raw deflate; the first two bytes distinguish them
            self._head += data
            if len(self._head) < 2:
                return
            data, self._head = self._head, b""
            self._stream = zlib.decompressobj(_ZLIB if _has_zlib_header(data) else _RAW)
        while data or self._is_full:
            data = self._inflate_piece(self._stream, data)

    def take(self) -> bytes:
        """Return the output since the last call; for streaming bodies."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)

    def finish(self) -> bytes:
        """Return the output that `take` has not returned.

        Raises:
            UpstreamAnswerBroken: the body ended inside the compressed stream.
        """
        if self._in and (self._stream is None or not self._stream.eof):
            raise UpstreamAnswerBroken("The upstream's compressed response is truncated.")
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)

    def _inflate_piece(self, stream: _Stream, data: bytes) -> bytes:
        """Run one step, and return the input that is not consumed yet."""
        if stream.eof:
            stream = self._next_member(data)
        try:
            piece = stream.decompress(data, _PIECE)
        except zlib.error:
            raise UpstreamAnswerBroken("The upstream's response is not in its declared content encoding.") from None
        self._is_full = len(piece) == _PIECE and not stream.eof  # zlib may buffer more output
        if piece:
            self._pieces.append(piece)
            self._out += len(piece)
        # guard: inflate-limit, inflate-ratio
        if self._out > self._limit or (self._out > _RATIO_FROM and self._out > _RATIO * self._in):
            raise self._excess()
        return stream.unused_data if stream.eof else stream.unconsumed_tail

    def _excess(self) -> UpstreamAnswerTooLarge:
        is_ratio = self._out <= self._limit
        return UpstreamAnswerTooLarge(
            f"The upstream's compressed response expands more than {_RATIO}-fold."
            if is_ratio
            else "The upstream's decompressed response is larger than a result may be."
        )

    def _next_member(self, data: bytes) -> _Stream:
        self._members += 1
        if not self._is_gzip or self._members > _MEMBERS or not _MAGIC.startswith(data[:2]):  # guard: inflate-members
            raise UpstreamAnswerBroken("The upstream's response continues after the end of its content encoding.")
        self._stream = zlib.decompressobj(_GZIP)
        return self._stream


def _has_zlib_header(data: bytes) -> bool:
    return data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
