"""An HTTP API for tests that never answers, and notices when the one who asked hangs up."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class SilentUpstream:
    """Received and sent messages."""

    port: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a request has come."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the sender has gone."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def authority(self) -> str:
        """Its host and port, for the list of allowed private upstreams."""
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def patient_upstream() -> AsyncGenerator[SilentUpstream]:
    """One on a free loopback port for as long as the block runs."""
    upstream = SilentUpstream()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            upstream.arrived.set()
            await reader.read(1)
        upstream.left.set()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    upstream.port = server.sockets[0].getsockname()[1]
    try:
        yield upstream
    finally:
        server.close()
