"""Ignored protocol upgrades: a request with an `Upgrade` header is served as if it had none.

Java's HTTP client requests HTTP/2 with each request over plain HTTP. RFC 9110 §7.8 lets a server ignore that, and
uvicorn does. But its parser treats the bytes after such a header as the other protocol, so the request would lose its
body. Here a second parser reads the body; it first receives the headers that delimit the body.
"""

import sys
from typing import Final, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_FRAMING_HEADERS: Final = frozenset({b"content-length", b"transfer-encoding"})
_NOTHING: Final = memoryview(b"")


class IgnoredUpgrades(HttpToolsProtocol):
    """uvicorn's HTTP protocol, for clients that request an upgrade."""

    _reading: bytes | memoryview = _NOTHING
    _rest = _NOTHING

    def data_received(self, data: bytes) -> None:
        """Parse bytes; each requested upgrade takes one more pass over the remaining bytes."""
        self._reading = data
        super().data_received(data)
        while self._rest:
            self._reading, self._rest = self._rest, _NOTHING
            super().data_received(cast(bytes, self._reading))
        self._reading = _NOTHING

    def on_message_complete(self) -> None:
        """End the request unless its body follows: after an upgrade header the parser reports the end too early."""
        if not (self.parser.should_upgrade() and self._framing):
            super().on_message_complete()

    @property
    def _framing(self) -> list[tuple[bytes, bytes]]:
        """The headers that delimit the body; empty without a body."""
        return [field for field in self.headers if field[0] in _FRAMING_HEADERS]

    def _unsupported_upgrade_warning(self) -> None:
        """Continue after the upgrade. uvicorn calls this method while it handles the parser's exception.

        The exception contains the position up to which the parser has read.
        """
        raised, reading = sys.exception(), memoryview(self._reading)  # a view: not copied for each upgrade
        read: int = raised.args[0] if isinstance(raised, httptools.HttpParserUpgrade) else len(reading)
        self._rest, framing = reading[read or len(reading) :], self._framing
        if framing:
            fields = b"".join(name + b": " + value + b"\r\n" for name, value in framing)
            reader = _BodyCallbacks(self)
            self.parser = httptools.HttpRequestParser(reader)
            self.parser.feed_data(b"POST / HTTP/1.1\r\n" + fields + b"\r\n")
            reader.is_past_header = True


class _BodyCallbacks:
    """Callbacks of the second parser: they ignore the repeated header and forward everything after it."""

    def __init__(self, connection: IgnoredUpgrades) -> None:
        self._connection = connection
        self.is_past_header = False
        self.on_body = connection.on_body
        self.on_message_complete = connection.on_message_complete

    def on_message_begin(self) -> None:
        """Pass on the start of a request."""
        if self.is_past_header:
            self._connection.on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Forward a part of the request target."""
        if self.is_past_header:
            self._connection.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Pass on one header."""
        if self.is_past_header:
            self._connection.on_header(name, value)

    def on_headers_complete(self) -> None:
        """Pass on the end of the header."""
        if self.is_past_header:
            self._connection.on_headers_complete()
