"""A scripted server with sessions that asks on their GET streams, and two replicas that are attached to it."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from gateway.domain.sessions import UpstreamSessionKey
from gateway.upstream.client import UpstreamClient
from gateway.upstream.live.interfaces import LiveAttachment
from gateway.upstream.live.mcp.caller_sessions import SessionsInUse
from tests.integration.upstream.live.parts import (
    Client,
    MemoryRecords,
    PassOn,
    attached_by,
    mcp_connector,
    shared_sessions,
    source,
)
from tests.integration.upstream.live.scripted_server import EVENTS, Scripted, event, json_body, result
from tests.integration.upstream.loopback import Exchange, body, loopback
from tests.support.replicas import until


@dataclass
class Asking:
    """A server that counts the calls of each session; a session has at most one GET stream."""

    script: Scripted = field(default_factory=Scripted)
    counts: dict[str, int] = field(default_factory=dict[str, int])
    streams: dict[str, Exchange] = field(default_factory=dict[str, Exchange])
    opened: int = 0
    answers: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue[dict[str, Any]])
    ended: list[str] = field(default_factory=list[str])
    released: asyncio.Event = field(default_factory=asyncio.Event)
    """Lets calls of `wait` end."""

    def __post_init__(self) -> None:
        self.script.replies |= {"tools/call": self._call, "GET": self._stream, "": self._take, "DELETE": self._end}

    async def ask(self, session: str, method: str = "elicitation/create") -> dict[str, Any]:
        """Ask on the GET stream of a session; return the answer, which has to come at once."""
        await self.streams[session].write(event({"jsonrpc": "2.0", "id": "q", "method": method, "params": {}}))
        with anyio.move_on_after(10):
            return await self.answers.get()
        return {"error": {"code": 0, "message": "no answer came"}}

    async def _call(self, exchange: Exchange, message: dict[str, Any]) -> bytes:
        [session] = exchange.header("mcp-session-id")
        if session in self.ended:
            return json_body({}, status=404)
        self.counts[session] = self.counts.get(session, 0) + 1
        text = str(self.counts[session])
        match message["params"]["name"]:
            case "ask":
                text = str(await self.ask(session))
            case "wait":
                await self.released.wait()
            case _:
                pass
        return json_body(result(message, {"content": [{"type": "text", "text": text}]}))

    async def _stream(self, exchange: Exchange, _: dict[str, Any]) -> bytes | None:
        [session] = exchange.header("mcp-session-id")
        if session in self.streams:
            return json_body({"jsonrpc": "2.0", "error": {"code": -32000, "message": "Conflict"}}, status=409)
        self.streams[session] = exchange
        self.opened += 1
        await exchange.write(EVENTS)
        await exchange.reader.read()
        del self.streams[session]
        return None

    async def _take(self, _: Exchange, message: dict[str, Any]) -> bytes:
        self.answers.put_nowait(message)
        return body(b"", status=202)

    async def _end(self, exchange: Exchange, _: dict[str, Any]) -> bytes:
        self.ended += exchange.header("mcp-session-id")
        return body(b"", status=200)


@dataclass
class Replicas:
    """Two replicas that share records and pass messages on to each other."""

    server: Asking
    records: MemoryRecords
    attachments: list[LiveAttachment]

    async def call(self, replica: int, client: Client, name: str = "count") -> str:
        """Call a tool; return its text."""
        params: dict[str, object] = {"name": name, "arguments": {}}
        found = await self.attachments[replica].request("tools/call", params, client)
        return str(found["content"][0]["text"])


@asynccontextmanager
async def two_replicas() -> AsyncGenerator[Replicas]:
    """Attach two replicas to the server."""
    server, records, in_use = Asking(), MemoryRecords(), [SessionsInUse(), SessionsInUse()]

    def passing_to(other: SessionsInUse) -> PassOn:
        async def pass_on(key: UpstreamSessionKey, message: bytes) -> bool:
            for _ in range(20):
                if records.marks:
                    await other.deliver(key, message)
                    return True
                await asyncio.sleep(0.05)  # as the replicas do: the other one marks a request that is slow
            return False

        return pass_on

    with anyio.fail_after(30):
        async with (
            loopback(server.script.answer) as listener,
            UpstreamClient(egress_allow=[listener.authority]) as upstream,
        ):
            declared = source({"url": f"http://{listener.authority}/mcp"})
            here, there = (
                mcp_connector(upstream, sessions=shared_sessions(records, in_use[one], passing_to(in_use[1 - one])))
                for one in range(2)
            )
            async with attached_by(here, declared) as first, attached_by(there, declared) as second:
                yield Replicas(server, records, [first, second])


async def until_true(holds: Callable[[], object]) -> None:
    """Wait until a condition holds."""

    async def is_so() -> bool:
        return bool(holds())

    await until(is_so, seconds=10)
