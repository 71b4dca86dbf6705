"""An HTTP API for tests that records every request exactly as it came, and sends the configured responses."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it was on the wire."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of this name, whatever its case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass(slots=True)
class RecordingUpstream:
    """Requests and future responses."""

    port: int
    seen: list[Seen] = field(default_factory=list[Seen])
    status: int = 200
    content_type: str = "application/json"
    body: bytes = b'{"ok":true}'
    headers: tuple[tuple[str, str], ...] = ()
    """Sent beside the content type."""
    respond: Callable[[Seen], bytes] | None = None
    """Body of the answer to a request, if set."""
    gate: asyncio.Event | None = None
    """Event for which an answer waits, if set."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has come."""

    def reset(self) -> None:
        """Forget what was asked, answer as at first, and let go of requests that wait."""
        if self.gate is not None:
            self.gate.set()
        fresh = RecordingUpstream(port=self.port)
        for name in self.__slots__:
            setattr(self, name, getattr(fresh, name))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        """Its host and port, for the list of allowed private upstreams."""
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def recording_upstream(certificate: Path | None = None) -> AsyncGenerator[RecordingUpstream]:
    """One upstream on a free loopback port for as long as the block runs; with a certificate, it has TLS."""
    upstream = RecordingUpstream(port=0)
    tls = None if certificate is None else ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if tls is not None and certificate is not None:
        tls.load_cert_chain(certificate)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await _exchange(upstream, reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()


async def _exchange(upstream: RecordingUpstream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ", 2)
    headers = tuple((name, value.strip()) for name, _, value in (line.partition(":") for line in head[1:]) if name)
    length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
    seen = Seen(method=method, target=target, headers=headers, body=await reader.readexactly(length))
    upstream.seen.append(seen)
    upstream.arrived.set()
    if upstream.gate is not None:
        await upstream.gate.wait()
    body = upstream.body if upstream.respond is None else upstream.respond(seen)
    answer = b"" if upstream.status == 204 or method == "HEAD" else body
    kind = f"content-type: {upstream.content_type}\r\n" if answer and upstream.content_type else ""
    kind += "".join(f"{name}: {value}\r\n" for name, value in upstream.headers)
    writer.write(f"HTTP/1.1 {upstream.status} X\r\n{kind}content-length: {len(answer)}\r\n\r\n".encode() + answer)
    await writer.drain()
