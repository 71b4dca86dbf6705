"""HTTP/1.1 client connection (RFC 9112): one request, then its response, then the next request.

Parsing is strict: a parser error, an exceeded bound and unrequested bytes close the connection. The only exception is
blanks after a chunk size: old servers pad the size, and all parsers treat it alike.

An upstream that leaves a request body unread parses the body as the next request (request smuggling). The head of the
next real request then completes the smuggled one. So a connection is closed after a request whose body could be parsed
as a head. After other bodies it is closed if the response began before the body was sent, or is an error; see
`reusable_below`.
"""

import asyncio
import select
from typing import Protocol, cast

import httptools

from gateway.upstream.egress.origins import PoolKey
from gateway.upstream.http.errors import BrokenOff, Disconnected, Malformed, Torn
from gateway.upstream.http.response import Pair, Response

_PIECE = 1 << 16
_HEAD = 1 << 16
"""Limit on the bytes of a head; twice this size limits head, chunk extensions and trailers together."""
_PER_CHUNK = 16
_FIELDS = 256
_INTERIM = 8
"""Limit on the interim responses (status below 200) before the final one (RFC 9110 section 15.2)."""
_SWITCHING = 101
_FINAL = 200
_VERSIONS = frozenset({"1.0", "1.1"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods for which servers expect a body; with others they often leave it unread (RFC 9110 section 9.3)."""
_NEVER, _BELOW_ERRORS, _ALWAYS = 0, 400, 600


def reusable_below(method: str, body: bytes | None) -> int:
    """Return the status below which a response leaves the connection reusable.

    A body without a line end cannot be parsed as a request head, because header fields end with a line end. JSON as the
    gateway writes it has none. After a body with line ends, such as multipart, the connection is closed.
    """
    if not body:
        return _ALWAYS
    if method not in _WITH_BODY or b"\n" in body or b"\r" in body:  # guard: unread-body
        return _NEVER
    return _BELOW_ERRORS


class Owner(Protocol):
    """The owner of idle connections: the connection pool."""

    def keep(self, connection: "Connection") -> None:
        """Keep an idle connection for another request."""

    def forget(self, connection: "Connection") -> None:
        """Drop a closed connection."""


class Connection(asyncio.Protocol):
    """One connection to an origin, from its opening to its end."""

    __slots__ = (
        "_answer",
        "_expected",
        "_fed",
        "_interim",
        "_is_blocked",
        "_is_fit",
        "_is_paused",
        "_owner",
        "_pairs",
        "_parser",
        "_poll",
        "_rest",
        "_reusable_below",
        "_transport",
        "kept_at",
        "key",
    )

    def __init__(self, owner: Owner, key: PoolKey) -> None:
        self._owner = owner
        self.key = key
        self.kept_at = 0.0
        self._poll: select.poll | None = None
        self._reusable_below = _ALWAYS
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._answer: Response | None = None
        self._pairs: list[Pair] = []
        self._rest: memoryview | None = None
        self._fed = self._expected = self._interim = 0
        self._is_fit, self._is_paused, self._is_blocked = True, False, False

    @property
    def is_fit(self) -> bool:
        """True if the connection is open, and no fault made it unusable."""
        return self._is_fit and self._transport is not None and not self._transport.is_closing()

    @property
    def is_quiet(self) -> bool:
        """True if the connection is fit, and neither bytes nor an end of stream wait in the kernel.

        The event loop would receive such bytes only in its next iteration. By then a request may have been sent, and
        the bytes would be parsed as its response.
        """
        if not self.is_fit or self._transport is None:
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not self._poll.poll(0)

    def ask(
        self,
        head: bytes,
        body: bytes | None,
        waiter: "asyncio.Future[None]",
        *,
        is_head: bool,
        reusable_below: int = _ALWAYS,
    ) -> Response:
        """Send a request; `waiter` is done once the response has a head or has failed.

        Raises:
            Disconnected: the connection is closed or unusable.
        """
        if self._transport is None or not self.is_fit:
            raise Disconnected
        response = self._answer = Response(self, waiter, has_no_body=is_head)
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
            self._parser.set_dangerous_leniencies(lenient_spaces_after_chunk_size=True)
        self._pairs = []
        self._fed = self._expected = self._interim = 0
        self._reusable_below = reusable_below
        if body is None or len(body) <= _PIECE:
            self._transport.write(head + body if body else head)
        else:
            self._transport.write(head)
            self._rest = memoryview(body)
            self._write_on()
        return response

    def release(self, response: Response) -> None:
        """Return the connection to its owner if the response leaves it reusable; otherwise close it."""
        # guard: answer-kept-whole, unread-body-of-an-error
        if response.has_ended and response.status < self._reusable_below and self.is_fit:
            self._answer = None
            self.resume()
            self._owner.keep(self)
        else:
            self.abort()

    def resume(self) -> None:
        """Resume reading, if it was paused."""
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once. An incomplete response fails, even one that ends with its connection."""
        self._is_fit = False
        self._rest = None
        if self._answer is not None:
            self._answer.fail(Disconnected() if self._answer.status == 0 else BrokenOff())
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport. The event loop calls this."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End an unfinished response and inform the owner. The event loop calls this once, at the end."""
        self._end(exc)
        self._transport = self._parser = self._answer = None
        self._owner.forget(self)

    def eof_received(self) -> None:
        """End the response. The event loop calls this; the transport closes itself afterwards."""
        self._end(None)

    def receive(self, data: bytes) -> None:
        """Parse received bytes. The event loop calls this."""
        response, parser = self._answer, self._parser
        if response is None or parser is None or response.has_ended or response.fault is not None:
            self.abort()
            return
        if self._fed == 0 and self._is_sending:  # guard: response-before-the-request-ends
            self._reusable_below = _NEVER  # the rest of the request would be read as the next one (section 9.3)
        self._fed += len(data)
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._is_fit = False
            response.fail(Malformed())
        else:
            self._weigh(response)
        if response.status or response.fault is not None:
            response.wake()

    data_received = receive

    def pause_writing(self) -> None:
        """Pause sending. The event loop calls this when the peer reads slowly."""
        self._is_blocked = True

    def resume_writing(self) -> None:
        """Resume sending. The event loop calls this when the write buffer has capacity again."""
        self._is_blocked = False
        self._write_on()

    def on_message_begin(self) -> None:
        """Refuse an unrequested response. The parser calls this.

        Raises:
            Malformed: no request waits for a response.
        """
        if self._answer is None or self._answer.has_ended:  # guard: answer-unasked
            raise Malformed

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect one header or trailer. The parser calls this.

        Raises:
            Malformed: the response has too many headers and trailers.
        """
        if len(self._pairs) >= _FIELDS:  # guard: answer-fields
            raise Malformed
        self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        """Begin the response, or count an interim one. The parser calls this.

        Raises:
            Malformed: the client cannot process this head.
        """
        response, parser = self._answer, self._parser
        if response is None or parser is None or parser.get_http_version() not in _VERSIONS:
            raise Malformed
        status, pairs = parser.get_status_code(), self._pairs
        if self._fed > _HEAD and sum(len(name) + len(value) for name, value in pairs) > _HEAD:
            raise Malformed
        self._pairs = []
        if status < _FINAL:
            self._interim += 1
            if status == _SWITCHING or self._interim > _INTERIM:
                raise Malformed
            return
        response.begin(status, pairs)
        if not parser.should_keep_alive() or (response.has_no_body and response.is_chunked):
            self._is_fit = False
        if response.has_no_body:
            response.has_ended = True
            self._parser = (
                None  # a response to HEAD has no body, but the parser would wait for one (RFC 9110 section 9.3.2)
            )

    def on_chunk_header(self) -> None:
        """Allow `_PER_CHUNK` bytes for a chunk header. The parser calls this for each chunk size."""
        self._expected += _PER_CHUNK

    def on_body(self, piece: bytes) -> None:
        """Add a piece of the body. The parser calls this.

        Raises:
            Malformed: a body is not allowed here.
        """
        response = self._answer
        if response is None or response.has_ended:
            raise Malformed
        self._expected += len(piece)
        response.add(piece)

    def on_message_complete(self) -> None:
        """End the response. The parser calls this also for an interim response, which is ignored here."""
        if self._answer is not None and self._answer.status:
            self._answer.has_ended = True

    def _weigh(self, response: Response) -> None:
        """Enforce the limits on received bytes; pause reading while more than `_PIECE` bytes of the body wait."""
        if response.status == 0:
            if self._fed > _HEAD:  # guard: answer-head
                response.fail(Malformed())
        elif response.is_chunked and self._fed - self._expected > 2 * _HEAD:  # guard: answer-chunks
            response.fail(Malformed())
        elif response.size > _PIECE and not (response.has_ended or self._is_paused) and self.is_reading:
            self._is_paused = True
            cast("asyncio.Transport", self._transport).pause_reading()

    @property
    def _is_sending(self) -> bool:
        """True while a part of the request has not reached the kernel."""
        return self._rest is not None or bool(self._transport and self._transport.get_write_buffer_size())

    @property
    def is_reading(self) -> bool:
        """True while the connection is open, so that more bytes can arrive."""
        return self._transport is not None and not self._transport.is_closing()

    def _end(self, error: Exception | None) -> None:
        """End the response with the connection. The response is complete only if nothing else delimits its body."""
        self._is_fit = False
        response = self._answer
        if response is None or response.has_ended:
            return
        if response.status == 0:
            response.fail(Disconnected() if error is None else Torn())
        elif response.until_close and error is None and response.fault is None:
            response.has_ended = True
            response.wake()
        else:
            response.fail(BrokenOff())

    def _write_on(self) -> None:
        """Write as much of a large body as the transport accepts."""
        while self._rest is not None and not self._is_blocked and self._transport is not None:
            if self._transport.is_closing():
                return
            piece, rest = self._rest[:_PIECE], self._rest[_PIECE:]
            self._rest = rest or None
            self._transport.write(piece)
