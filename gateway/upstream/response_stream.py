"""Streaming reader of one upstream response: decompressed chunks, limited in size. The caller sets the deadline.

The reader is for protocols whose responses are streams of messages.
"""

from types import TracebackType
from typing import Self

from gateway.errors import UpstreamAnswerTooLarge
from gateway.upstream.decompression import open_inflater
from gateway.upstream.http.errors import FAULTS, translate
from gateway.upstream.http.response import Response


class ResponseStream:
    """A response whose head has arrived; `limit_bytes` limits the decompressed body.

    On exit, the connection returns to the pool; it is closed if the body was not read completely.
    """

    def __init__(self, response: Response, *, limit_bytes: int) -> None:
        self._response = response
        self._limit = limit_bytes
        self._count = 0
        encoding = response.field(b"content-encoding")
        self._inflater = None if encoding is None else open_inflater((encoding,), limit=limit_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._response.at_eof():
            self._response.release()
        else:
            self._response.close()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    def field(self, name: bytes) -> str | None:
        """Return the value of a header, by lower-case name."""
        return self._response.field(name)

    async def read(self) -> bytes:
        """Return the next decompressed chunk; empty at the end of the body.

        Raises:
            UpstreamAnswerTooLarge: the body exceeds the limit.
            UpstreamUnreachable, UpstreamAnswerBroken: the response was cut short or is malformed.
        """
        response, inflater = self._response, self._inflater
        try:
            while not (response.has_no_body or response.at_eof()):
                piece = await response.readany()
                if inflater is not None:
                    inflater.feed(piece)
                    piece = inflater.take()
                self._count += len(piece)
                if self._count > self._limit:  # guard: stream-limit
                    raise UpstreamAnswerTooLarge("The upstream's response is larger than a result may be.")
                if piece:
                    return piece
            self._inflater = None
            return b"" if inflater is None else inflater.finish()
        except FAULTS as error:
            raise translate(error) from None

    async def read_whole(self) -> bytes:
        """Return the rest of the body.

        Raises:
            UpstreamError: as for `read`.
        """
        pieces = [piece := await self.read()]
        while piece:
            pieces.append(piece := await self.read())
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
