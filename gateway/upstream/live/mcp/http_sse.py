"""HTTP+SSE channel (MCP 2024-11-05): receives messages as events of one GET, and sends them as POST requests."""

from collections import deque
from typing import Self

from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import LiveSourceFailed
from gateway.upstream.event_stream import is_event_stream
from gateway.upstream.live.mcp.endpoint import AuthorizedEndpoint
from gateway.upstream.live.mcp.event_parser import Event, EventParser
from gateway.upstream.live.mcp.limits import MAX_ENDPOINT_LENGTH, MAX_STREAMED
from gateway.upstream.response_stream import ResponseStream


class SseChannel:
    """One connection to an HTTP+SSE server."""

    def __init__(self, endpoint: AuthorizedEndpoint, stream: ResponseStream) -> None:
        self._endpoint = endpoint
        self._stream = stream
        self._parser = EventParser()
        self._events: deque[Event] = deque()
        self._url = ""

    @classmethod
    async def open(cls, endpoint: AuthorizedEndpoint) -> Self:
        """Open the stream, and read the message URL from its first event.

        Raises:
            LiveSourceFailed: the server does not support HTTP+SSE, or the message URL has another origin.
        """
        stream = await endpoint.open("GET", (), limit_bytes=MAX_STREAMED)
        channel = cls(endpoint, stream)
        try:
            if not is_event_stream(stream.field(b"content-type") or ""):
                raise LiveSourceFailed("the server responded without a stream of events")
            first = await channel._next()
            if first is None or first.kind != "endpoint" or not 0 < len(first.data) <= MAX_ENDPOINT_LENGTH:
                raise LiveSourceFailed("the server's stream does not begin with its endpoint")
            channel._url = endpoint.join(first.data.decode("ascii", "replace"))
        except BaseException:
            await channel.close()
            raise
        return channel

    @property
    def tenant(self) -> TenantId:
        """The tenant of the live source."""
        return self._endpoint.tenant

    async def send(self, raw: bytes) -> None:
        """POST one message."""
        with await self._endpoint.open("POST", (), raw, url=self._url):
            pass

    async def receive(self) -> bytes | None:
        """Return the data of the next message event."""
        while (event := await self._next()) is not None:
            if event.kind == "message" and event.data:
                return await self._endpoint.redact(event.data)
        return None

    async def close(self) -> None:
        """Close the stream."""
        self._stream.__exit__(None, None, None)

    async def _next(self) -> Event | None:
        while not self._events:
            piece = await self._stream.read()
            if not piece:
                return None
            self._events.extend(self._parser.feed(piece))
        return self._events.popleft()
