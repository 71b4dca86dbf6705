"""What becomes of a client's wish to go on in another protocol: nothing, its request is served as it is.

Java's HTTP client asks for HTTP/2 with each request over plain HTTP. RFC 9110 §7.8 lets a server ignore that, and
uvicorn does; but its parser takes whatever follows such a header for the other protocol, so the request would lose its
body. Here another parser reads on, which is shown only how the body is framed.
"""

import sys
from typing import Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_NOTHING: Final = memoryview(b"")


class OneProtocol(HttpToolsProtocol):
    """uvicorn's connection, for clients that would rather speak something else."""

    _is_read_again = False
    _reading = _rest = _NOTHING

    def data_received(self, data: bytes) -> None:
        """Some bytes; they are read in as many goes as there are such wishes in them."""
        rest = memoryview(data)  # is not copied for each
        while rest:
            self._reading, self._rest = rest, _NOTHING
            super().data_received(cast(bytes, rest))
            rest = self._rest
        self._reading = _NOTHING

    def on_message_begin(self) -> None:
        """A request begins, unless its header is read again."""
        if not self._is_read_again:
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        if not self._is_read_again:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field."""
        if not self._is_read_again:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its header is there."""
        if not self._is_read_again:
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of it is there; where another protocol was asked for, the parser says so without looking for a body."""
        if not (self.parser.should_upgrade() and self._framing):
            super().on_message_complete()

    @property
    def _framing(self) -> list[tuple[bytes, bytes]]:
        """What says how long the body is; nothing where there is none."""
        return [field for field in self.headers if field[0] in _FRAMING]

    def _unsupported_upgrade_warning(self) -> None:
        """Read on; uvicorn calls this while it handles what the parser has raised, which says how far it has read."""
        raised = sys.exception()
        read: int = raised.args[0] if isinstance(raised, httptools.HttpParserUpgrade) else len(self._reading)
        self._rest, framing = self._reading[read or len(self._reading) :], self._framing
        if framing:
            fields = b"".join(name + b": " + value + b"\r\n" for name, value in framing)
            self.parser = httptools.HttpRequestParser(self)
            self._is_read_again = True
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + fields + b"\r\n")
            self._is_read_again = False
