"""Delay of updates to 1,000 listeners on two replicas, and memory of up to 10,000 idle listeners on one.

Raises the limit of open files for itself and its children as far as allowed, and reports the limit reached.
"""

import asyncio
import json
import resource
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

from benchmarks.figures import Table, percentile, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_servers, scratch
from benchmarks.processes import Failed, memory_mb
from benchmarks.requests import ACCEPT, MODERN, PROTOCOL
from gateway.app.server.limits import MAX_CONNECTIONS

_LISTENERS = 1000
_UPDATES = 20
_IDLE = 10_000
_SPARE_FILES = 500
_SPARE_CONNECTIONS = 100
_AT_ONCE = 20
_SETTLING_S = 3.0
"""Time for the memory used by opening streams to be released; no event announces that."""
_PATIENCE_S = 60.0
_URI = "note://bench"
_NOTE = {
    "definition": {"uri": _URI, "name": "note", "mimeType": "text/plain"},
    "handler": {"kind": "static", "contents": [{"uri": _URI, "mimeType": "text/plain", "text": "x"}]},
}


def measure_listeners(rounds: int) -> Table:
    """Measure listeners and return their table."""
    files = _raise_limit()
    idle = min(_IDLE, files - _SPARE_FILES, MAX_CONNECTIONS - _SPARE_CONNECTIONS)
    late: list[float] = []
    weights: list[float] = []
    with running_servers() as servers, scratch() as folder, ExitStack() as stack:
        replicas = [
            stack.enter_context(running_gateway(folder / name, servers=servers)) for name in ("first", "second")
        ]
        key = replicas[0].tenant("bench")
        replicas[0].send("POST", "/tenants/bench/resources", json.dumps(_NOTE).encode())
        empty_mb = memory_mb(replicas[1].pid, "VmRSS")
        for _ in range(rounds):
            late += asyncio.run(_deliver(replicas, key))
        weights.append(asyncio.run(_weigh(replicas[1], key, idle)) - empty_mb)
    rows = (
        ("publish → received, 50th percentile, ms", f"{percentile(late, 50) * 1000:.0f}"),
        ("publish → received, 99th percentile, ms", f"{percentile(late, 99) * 1000:.0f}"),
        ("publish → received, the last of all, ms", f"{max(late) * 1000:.0f}"),
        (
            f"{idle:,} idle listeners: resident memory above that of the replica when it had just started, MB",
            spread(weights),
        ),
    )
    how = (
        f"{_LISTENERS:,} listeners (2026-07-28) of one resource, half of them at each of two replicas, each on a "
        f"connection of its own; {_UPDATES} updates a round, each reported at the first replica when the one before "
        "had arrived everywhere. Clients, replicas, PostgreSQL and Redis share the machine; what the client takes to "
        "read counts."
    )
    notes = (how, f"The limit of open files was raised to {files:,}; a replica takes {MAX_CONNECTIONS:,} connections.")
    return Table(title="Listeners", columns=("what", "figure"), rows=rows, notes=notes)


def _raise_limit() -> int:
    """Raise the limit of open files as far as allowed, for this process and its children; return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return max(soft, wanted)


class _Listener:
    """One open stream; `received` has the time of each update."""

    def __init__(self) -> None:
        self.received: list[float] = []

    async def read(self, reader: asyncio.StreamReader, arrived: asyncio.Queue[None]) -> None:
        """Record the time of each update until the stream ends."""
        while line := await reader.readline():
            if b"resources/updated" in line:
                self.received.append(time.perf_counter())
                arrived.put_nowait(None)


async def _deliver(replicas: Sequence[RunningGateway], key: str) -> list[float]:
    """Measure the seconds from each update until each listener received it."""
    arrived: asyncio.Queue[None] = asyncio.Queue()
    late: list[float] = []
    async with AsyncExitStack() as stack:
        streams = await _open_many(stack, [replicas[number % 2].port for number in range(_LISTENERS)], key)
        listeners = [_Listener() for _ in streams]
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        reading = [
            tasks.create_task(listener.read(reader, arrived))
            for listener, reader in zip(listeners, streams, strict=True)
        ]
        for number in range(_UPDATES):
            began = time.perf_counter()
            await asyncio.to_thread(_publish, replicas[0])
            async with asyncio.timeout(_PATIENCE_S):
                for _ in listeners:
                    await arrived.get()
            late += [listener.received[number] - began for listener in listeners]
        for task in reading:
            task.cancel()
    return late


def _publish(replica: RunningGateway) -> None:
    replica.send("POST", "/tenants/bench/resources/updated", json.dumps({"uri": _URI}).encode())


async def _weigh(replica: RunningGateway, key: str, count: int) -> float:
    """Return the resident MB of the replica with this many open streams."""
    async with AsyncExitStack() as stack:
        await _open_many(stack, [replica.port] * count, key)
        await asyncio.sleep(_SETTLING_S)
        return memory_mb(replica.pid, "VmRSS")


async def _open_many(stack: AsyncExitStack, ports: Sequence[int], key: str) -> list[asyncio.StreamReader]:
    opened: list[asyncio.StreamReader] = []
    for first in range(0, len(ports), _AT_ONCE):
        batch = [stack.enter_async_context(_listening(port, key)) for port in ports[first : first + _AT_ONCE]]
        opened += await asyncio.gather(*batch)
    return opened


@asynccontextmanager
async def _listening(port: int, key: str) -> AsyncGenerator[asyncio.StreamReader]:
    """Open one stream and wait for its acknowledgement."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(_request(port, key))
        async with asyncio.timeout(_PATIENCE_S):
            status = await reader.readline()
            if b" 200 " not in status:
                raise Failed(f"a listener was refused: {(status + await reader.read(500))!r}")
            while b"acknowledged" not in await reader.readline():
                pass
        yield reader
    finally:
        writer.close()


def _request(port: int, key: str) -> bytes:
    envelope: dict[str, Any] = {f"{PROTOCOL}/protocolVersion": MODERN, f"{PROTOCOL}/clientCapabilities": {}}
    params: dict[str, Any] = {"_meta": envelope, "notifications": {"resourceSubscriptions": [_URI]}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).encode()
    lines = [
        "POST /t/bench/mcp HTTP/1.1",
        f"host: 127.0.0.1:{port}",
        f"authorization: Bearer {key}",
        "content-type: application/json",
        f"accept: {ACCEPT}",
        f"mcp-protocol-version: {MODERN}",
        "mcp-method: subscriptions/listen",
        f"content-length: {len(body)}",
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body
