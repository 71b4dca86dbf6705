"""A closed loop of one HTTP request over N keep-alive connections: `python -m benchmarks.load`, spoken to over stdin.

Reads one JSON object {"port", "request" (raw bytes as latin-1), "connections", "calls"} and prints one with the
latencies in milliseconds. It runs in a process of its own, so that its work is not the server's.
"""

import asyncio
import json
import sys
import time
from typing import Any

import uvloop

_BOUND_S = 300


async def _connection(port: int, request: bytes, calls: int, latencies: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for _ in range(calls):
            started = time.perf_counter()
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if b" 200 " not in head[:16]:
                raise SystemExit(f"unexpected answer: {head!r}")
            length = head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]
            body = await reader.readexactly(int(length))
            if b'"isError":true' in body or b'"error"' in body[:60]:
                raise SystemExit(f"an error was answered: {body[:300]!r}")
            latencies.append((time.perf_counter() - started) * 1000)
    finally:
        writer.close()


async def _run(order: dict[str, Any]) -> dict[str, Any]:
    latencies: list[float] = []
    share = order["calls"] // order["connections"]
    request = order["request"].encode("latin-1")
    started = time.perf_counter()
    async with asyncio.timeout(_BOUND_S), asyncio.TaskGroup() as group:
        for _ in range(order["connections"]):
            group.create_task(_connection(order["port"], request, share, latencies))
    latencies.sort()
    return {
        "calls": len(latencies),
        "wall_s": time.perf_counter() - started,
        "p50_ms": latencies[len(latencies) // 2],
        "p99_ms": latencies[len(latencies) * 99 // 100],
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.load(sys.stdin)))))
