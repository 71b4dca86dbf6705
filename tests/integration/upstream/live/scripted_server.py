"""An MCP server whose every byte a test decides; what the test leaves out is answered as a good server would."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import anyio

from gateway.domain.http.requests import Credential, NamedCredential
from gateway.handlers.live.access import StoredSourceAccess
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveAttachment
from tests.integration.upstream.live.parts import (
    Listener,
    MemoryRecords,
    Secrets,
    attached_by,
    mcp_connector,
    shared_sessions,
    source,
)
from tests.integration.upstream.loopback import Exchange, Loopback, body, loopback

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
SESSION = "Mcp-Session-Id: s-"

Reply: TypeAlias = Callable[[Exchange, dict[str, Any]], Awaitable[bytes | None]]
"""Returns the bytes of a response, or writes them itself and returns None, which ends the connection."""


def json_body(value: object, *headers: str, status: int = 200) -> bytes:
    """A whole HTTP response with this JSON."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return body(raw, "Content-Type: application/json", *headers, status=status)


def result(message: Mapping[str, Any], value: object) -> dict[str, Any]:
    """The response to a message."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def event(value: object, *lines: str) -> bytes:
    """One event with this JSON."""
    return "".join(f"{line}\n" for line in lines).encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


@dataclass(slots=True)
class Scripted:
    """The script: replies by method, or by HTTP method for GET and DELETE."""

    replies: dict[str, Reply] = field(default_factory=dict[str, Reply])
    is_modern: bool = False
    capabilities: Mapping[str, object] = field(
        default_factory=lambda: {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
    )
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    sessions: int = 0

    def sent(self, method: str) -> list[dict[str, Any]]:
        """The messages of this method that came."""
        return [message for message in self.messages if message.get("method") == method]

    def states(self, method: str, value: object, *headers: str, status: int = 200) -> None:
        """Answer a method with the same JSON each time; a dictionary is its result."""

        async def reply(_: Exchange, message: dict[str, Any]) -> bytes:
            given = cast(Any, value)
            if isinstance(value, dict) and "jsonrpc" not in value:
                given = result(message, given)
            return json_body(given, *headers, status=status)

        self.replies[method] = reply

    def streams(self, method: str, *events: Callable[[dict[str, Any]], bytes]) -> None:
        """Answer a method with these events, made of its message, and end the stream."""

        async def reply(_: Exchange, message: dict[str, Any]) -> bytes:
            return EVENTS + b"".join(make(message) for make in events)

        self.replies[method] = reply

    async def answer(self, exchange: Exchange) -> bool:
        """Answer one request."""
        verb = exchange.line.split(" ")[0]
        message: dict[str, Any] = json.loads(exchange.body) if exchange.body else {"method": verb}
        self.messages.append(message)
        method = message.get("method", "")
        reply = self.replies.get(method)
        raw = await reply(exchange, message) if reply is not None else self._usual(method, message)
        if raw is None:
            return False
        await exchange.write(raw)
        return not raw.startswith(EVENTS)

    def _usual(self, method: str, message: dict[str, Any]) -> bytes:
        if method == "server/discover":
            found = {"supportedVersions": ["2026-07-28"], "capabilities": self.capabilities, "resultType": "complete"}
            return json_body(result(message, found)) if self.is_modern else body(b"", status=400)
        if method == "initialize":
            self.sessions += 1
            found = {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": {"name": "x"}}
            return json_body(result(message, found), f"{SESSION}{self.sessions}")
        if method in {"GET", ""}:
            return body(b"", status=405 if method else 202)
        return body(b"", status=202) if "id" not in message else json_body(result(message, {"content": []}))


@dataclass(slots=True)
class World:
    """An attachment to a scripted server."""

    script: Scripted
    server: Loopback
    attachment: LiveAttachment
    listener: Listener
    secrets: Secrets
    records: MemoryRecords


@asynccontextmanager
async def attached_to(
    script: Scripted, *, secret: str | None = None, origin: str | None = None, **settings: object
) -> AsyncGenerator[World]:
    """Attach to a scripted server while the block runs; the secret is a bearer token, for its origin or another one."""
    listener, secrets, records = Listener(), Secrets(), MemoryRecords()
    with anyio.fail_after(30):
        async with loopback(script.answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
            here = f"http://{server.authority}"
            if secret is not None:
                origins = (origin or here,)
                secrets.stored["key"] = NamedCredential(
                    place="bearer", credential=Credential(value=secret), origins=origins
                )
            declared = source({"url": f"{here}/mcp", **settings}, credential=None if secret is None else "key")
            connector = mcp_connector(upstream, StoredSourceAccess(secrets), shared_sessions(records))
            async with attached_by(connector, declared, listener) as attachment:
                yield World(script, server, attachment, listener, secrets, records)
