"""Sessions and their event streams as bytes on the wire, each request at the replica that a test names."""

import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import httpx2

from tests.support.gateway import ACCEPT
from tests.support.replicas import Replica, Replicas
from tests.support.serving import NO_TLS

PATIENCE_S = 20.0


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    name: str
    data: str
    id: str | None = None
    retry: int | None = None

    @property
    def message(self) -> dict[str, Any]:
        """Its content, as JSON-RPC."""
        reported: dict[str, Any] = json.loads(self.data)
        return reported


class Events:
    """An open stream, read event by event."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._chunks = response.aiter_bytes()
        self._pending = b""
        self._read: deque[str] = deque()
        self._kept: deque[str] = deque()

    async def next(self, *, seconds: float = PATIENCE_S) -> Event:
        """The next event; AssertionError at the end of the stream."""
        with anyio.fail_after(seconds):
            event = await self._next()
        assert event is not None, "the stream has ended"
        return event

    async def next_or_end(self) -> Event | None:
        """The next event, however long it takes; None at the end of the stream."""
        return await self._next()

    async def message(self, *, seconds: float = PATIENCE_S) -> dict[str, Any]:
        """The next event with content."""
        while True:
            event = await self.next(seconds=seconds)
            if event.data:
                return event.message

    async def comment(self, *, seconds: float = PATIENCE_S) -> None:
        """Wait for the next comment; events that come before it are kept."""
        with anyio.fail_after(seconds):
            while True:
                line = await self._line()
                assert line is not None, "the stream has ended"
                if line.startswith(":"):
                    return
                self._kept.append(line)

    async def rest(self, *, seconds: float = PATIENCE_S) -> list[Event]:
        """All events up to the end of the stream."""
        events: list[Event] = []
        with anyio.fail_after(seconds):
            while (event := await self._next()) is not None:
                events.append(event)
        return events

    async def _next(self) -> Event | None:
        fields: dict[str, str] = {}
        while (line := self._kept.popleft() if self._kept else await self._line()) is not None:
            if line.startswith(":"):
                continue
            if line:
                name, _, value = line.partition(":")
                fields[name] = value.removeprefix(" ")
            elif fields:
                return _event_of(fields)
        return None

    async def _line(self) -> str | None:
        """The next line as the format has them, which are not all that Python takes for one; None at the end."""
        while not self._read:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                return None
            *lines, self._pending = (self._pending + chunk).split(b"\n")
            self._read.extend(line.removesuffix(b"\r").decode() for line in lines)
        return self._read.popleft()


def _event_of(fields: dict[str, str]) -> Event:
    retry = fields.get("retry")
    return Event(
        fields.get("event", "message"),
        fields.get("data", ""),
        fields.get("id"),
        None if retry is None else int(retry),
    )


@dataclass(slots=True)
class Wire:
    """A client of the handshake era that speaks HTTP by itself."""

    replicas: Replicas
    slug: str
    key: str
    session: str = ""
    revision: str = "2025-11-25"
    _clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict[str, httpx2.AsyncClient])

    @property
    def path(self) -> str:
        """The tenant's URL."""
        return f"/t/{self.slug}/mcp"

    @property
    def headers(self) -> dict[str, str]:
        """Headers of every request of the session."""
        named = {"mcp-session-id": self.session, "mcp-protocol-version": self.revision} if self.session else {}
        return {"accept": ACCEPT, **named}

    async def initialize(self, at: Replica, **capabilities: Any) -> None:
        """Open the session and report that it is open."""
        params = {
            "protocolVersion": self.revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "wire", "version": "1"},
        }
        answer = await self.post(at, request("initialize", params, 0))
        answer.raise_for_status()
        self.session = answer.headers["mcp-session-id"]
        accepted = await self.post(at, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert accepted.status_code == 202, accepted.text

    def client(self, at: Replica) -> httpx2.AsyncClient:
        """A connection pool to one replica."""
        made = self._clients.get(at.gateway.url)
        if made is None:
            made = self._clients[at.gateway.url] = httpx2.AsyncClient(
                base_url=at.gateway.url,
                headers={"authorization": f"Bearer {self.key}"},
                timeout=PATIENCE_S,
                verify=NO_TLS,
                trust_env=False,
            )
        return made

    async def post(self, at: Replica, body: dict[str, Any], **headers: str) -> httpx2.Response:
        """The whole answer to one message."""
        sent = {**self.headers, **_named(headers)}
        return await self.client(at).post(self.path, json=body, headers=sent)

    async def delete(self, at: Replica) -> httpx2.Response:
        """End the session."""
        return await self.client(at).delete(self.path, headers=self.headers)

    async def notify(self, at: Replica, method: str, params: dict[str, Any]) -> None:
        """Send a notification."""
        answer = await self.post(at, {"jsonrpc": "2.0", "method": method, "params": params})
        assert answer.status_code == 202, answer.text

    async def answer(self, at: Replica, asked: dict[str, Any], result: dict[str, Any]) -> httpx2.Response:
        """Answer a request of the server."""
        return await self.post(at, {"jsonrpc": "2.0", "id": asked["id"], "result": result})

    @asynccontextmanager
    async def streaming(self, at: Replica, body: dict[str, Any], **headers: str) -> AsyncGenerator[Events]:
        """The answer to a POST as it comes."""
        sent = {**self.headers, **_named(headers)}
        async with self.client(at).stream("POST", self.path, json=body, headers=sent) as response:
            yield Events(response)

    @asynccontextmanager
    async def listening(self, at: Replica, after: str | None = None, **headers: str) -> AsyncGenerator[Events]:
        """A GET stream, from a place on."""
        place = {} if after is None else {"last-event-id": after}
        sent = {**self.headers, "accept": "text/event-stream", **place, **_named(headers)}
        async with self.client(at).stream("GET", self.path, headers=sent) as response:
            yield Events(response)

    async def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()


def request(method: str, params: dict[str, Any] | None = None, request_id: int | str = 1) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def call(name: str, arguments: dict[str, Any] | None = None, request_id: int | str = 1, **meta: Any) -> dict[str, Any]:
    """A tools/call."""
    params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
    return request("tools/call", {**params, "_meta": meta} if meta else params, request_id)


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
