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


class IgnoredUpgrades(HttpToolsProtocol):
    """uvicorn's connection, for clients that would rather speak something else."""

    _reading: bytes | memoryview = _NOTHING
    _rest = _NOTHING

    def data_received(self, data: bytes) -> None:
        """Some bytes; they are read in as many goes as there are such wishes in them."""
        self._reading = data
        super().data_received(data)
        while self._rest:
            self._reading, self._rest = self._rest, _NOTHING
            super().data_received(cast(bytes, self._reading))
        self._reading = _NOTHING

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
        raised, reading = sys.exception(), memoryview(self._reading)  # is not copied for each wish
        read: int = raised.args[0] if isinstance(raised, httptools.HttpParserUpgrade) else len(reading)
        self._rest, framing = reading[read or len(reading) :], self._framing
        if framing:
            fields = b"".join(name + b": " + value + b"\r\n" for name, value in framing)
            reader = _Reader(self)
            self.parser = httptools.HttpRequestParser(reader)
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + fields + b"\r\n")
            reader.is_past_header = True


class _Reader:
    """What the other parser tells: nothing of the header that it is shown again, and all of what follows."""

    def __init__(self, connection: IgnoredUpgrades) -> None:
        self._connection = connection
        self.is_past_header = False
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        """A request begins."""
        if self.is_past_header:
            self._connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """A part of its target."""
        if self.is_past_header:
            self._connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One field."""
        if self.is_past_header:
            self._connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its header is there."""
        if self.is_past_header:
            self._connection.on_headers_complete()
