"""A closed loop of HTTP requests over N keep-alive connections, in its own process: `python -m benchmarks.load`.

Each line on stdin is one order, `{"port", "requests" (raw, as latin-1), "connections", "calls", "seconds"}`; each line
on stdout is its result. Every connection sends the requests in turn, from its own starting position, and sends the next
one when the last is answered. Each has its own request id, since no session has two requests with one id in flight.

An order ends after its number of calls or seconds, whichever comes first, but never within a turn through the requests.
A response that is not a success ends it with an error: figures of refused calls would be worthless.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, field
from typing import Any, cast

import uvloop

from benchmarks.figures import percentile
from benchmarks.requests import ID

_PATIENCE_S = 90
_CHUNK = 256 * 1024
_NAMED = f'"id": {ID}'.encode()
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(slots=True)
class _Order:
    """State shared by all connections of one load."""

    requests: int
    calls: int
    ends_at: float
    latencies: list[float] = field(default_factory=list[float])
    issued: int = 0
    is_over: bool = False

    def take(self) -> bool:
        """True if one more request is to be sent; counts it."""
        if self.issued and self.issued % self.requests == 0:
            self.is_over = self.is_over or self.issued >= self.calls or time.perf_counter() > self.ends_at
        self.issued += not self.is_over
        return not self.is_over


class _Connection(asyncio.BufferedProtocol):
    """One keep-alive connection with one request in flight."""

    def __init__(self, order: _Order, requests: list[bytes], place: int) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._order = order
        self._requests = requests
        self._place = place
        self._arriving = memoryview(bytearray(_CHUNK))
        self._buffer = b""
        self._started = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._send()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._arriving

    def buffer_updated(self, nbytes: int) -> None:
        self._buffer += self._arriving[:nbytes]
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        length = LENGTH.search(self._buffer, 0, head_end)
        if length is None:
            self._fail(f"an answer without a length: {self._buffer[:300]!r}")
            return
        if len(self._buffer) < head_end + 4 + int(length[1]):
            return
        self._order.latencies.append((time.perf_counter() - self._started) * 1000)
        body = self._buffer[head_end + 4 :]
        if self._buffer[9:10] != b"2" or b'"isError":true' in body or b'"error":{' in body[:80]:
            self._fail(f"not a success: {self._buffer[:600]!r}")
            return
        self._buffer = b""
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self._fail(f"the connection was closed: {exc}")

    def _send(self) -> None:
        if not self._order.take():
            self.done.set_result(None)
            self._transport.close()
            return
        request = self._requests[self._place % len(self._requests)]
        self._place += 1
        self._started = time.perf_counter()
        self._transport.write(request)

    def _fail(self, reason: str) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(reason))
        self._transport.close()


async def run(order: dict[str, Any]) -> dict[str, Any]:
    """Run one order."""
    requests = [raw.encode("latin-1") for raw in order["requests"]]
    started = time.perf_counter()
    shared = _Order(len(requests), order["calls"], started + order["seconds"])
    loop = asyncio.get_running_loop()
    connections: list[_Connection] = []
    async with asyncio.timeout(order["seconds"] + _PATIENCE_S):
        for number in range(order["connections"]):
            place = number * len(requests) // order["connections"]
            own = [raw.replace(_NAMED, f'"id": {ID + number}'.encode()) for raw in requests]
            protocol = _Connection(shared, own, place)
            connections.append(protocol)
            await loop.create_connection(lambda kept=protocol: kept, "127.0.0.1", order["port"])  # type: ignore[misc]  # a default binds
        await asyncio.gather(*(connection.done for connection in connections))
    seen = shared.latencies
    wall = time.perf_counter() - started
    return {"calls": len(seen), "wall_s": wall, "p50_ms": percentile(seen, 50), "p99_ms": percentile(seen, 99)}


def main() -> None:
    """Run orders until stdin ends."""
    for line in sys.stdin:
        try:
            seen = uvloop.run(run(json.loads(line)))
        except (OSError, RuntimeError, TimeoutError) as error:
            seen = {"failed": str(error) or type(error).__name__}
        print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main()
