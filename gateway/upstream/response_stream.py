"""One response that is read while it arrives: decoded pieces, within a size limit, without its own deadline.

It serves protocols whose responses are streams of messages. The caller limits the time.
"""

from types import TracebackType
from typing import Self

from gateway.errors import UpstreamAnswerTooLarge
from gateway.upstream.decompression import open_inflater
from gateway.upstream.http.errors import FAULTS, translate
from gateway.upstream.http.response import Response


class ResponseStream:
    """A response whose head has arrived; leaving the block releases its connection, or closes it if bytes are unread.

    `limit_bytes` limits the decoded body.
    """

    def __init__(self, answer: Response, *, limit_bytes: int) -> None:
        self._answer = answer
        self._limit = limit_bytes
        self._count = 0
        encoding = answer.field(b"content-encoding")
        self._inflater = None if encoding is None else open_inflater((encoding,), limit=limit_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._answer.at_eof():
            self._answer.release()
        else:
            self._answer.close()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status

    def field(self, name: bytes) -> str | None:
        """Return the header with this lower-case name."""
        return self._answer.field(name)

    async def read(self) -> bytes:
        """Return the next decoded piece; empty at the end of the body.

        Raises:
            UpstreamAnswerTooLarge: the body exceeds the limit.
            UpstreamUnreachable, UpstreamAnswerBroken: the response was cut short or is malformed.
        """
        answer, inflater = self._answer, self._inflater
        try:
            while not (answer.has_no_body or answer.at_eof()):
                piece = await answer.readany()
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
