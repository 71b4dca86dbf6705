"""Effect of floods on another tenant's latency: `python -m benchmarks.floods`.

A gateway with its default limits serves two tenants. One sends a flood to the admin API, some with wrong or no keys,
from its own process in every other window of a run. The other calls a tool all the time, one call at a time. The ratio
is that of its medians with and without the flood.
"""

import argparse
import asyncio
import http.client
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.gateways import RunningGateway, running_gateway, scratch
from benchmarks.requests import ACCEPT
from gateway.domain.tenancy.keys import mint_key

_WINDOW_S = 3.0
_FLOODS = {
    "validate": (80.0, 32),
    "wrong keys": (1700.0, 64),
    "wrong keys, many connections": (1700.0, 512),
    "no credential": (1700.0, 64),
    "lists": (400.0, 32),
}
"""Requests per second, and connections, of each flood."""
_UNLIMITED = {"GATEWAY_ADMIN_RATE": "1000000", "GATEWAY_AUTH_FAILURE_RATE": "1000000"}
_TOOL: dict[str, Any] = {
    "definition": {"name": "hello", "description": "Greets.", "inputSchema": {"type": "object", "properties": {}}},
    "handler": {"kind": "static", "content": [{"type": "text", "text": "hello"}]},
}
_CALL: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "hello",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def main() -> None:
    """Measure every flood and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--unlimited", action="store_true", help="without the gateway's limits, to compare")
    parser.add_argument("--flood", nargs=3, metavar=("NAME", "PORT", "KEY"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        name, port, key = options.flood
        print(json.dumps(asyncio.run(_send_flood(name, int(port), key))))
        return
    limits = _UNLIMITED if options.unlimited else {}
    with scratch() as folder, running_gateway(folder, limits=limits) as gateway:
        key = gateway.tenant("third")
        gateway.send("POST", "/tenants/third/tools", json.dumps(_TOOL).encode())
        gateway.send("POST", "/tenants", b'{"slug":"evil"}')
        for name in _FLOODS:
            print(_measure(name, gateway, key, options.rounds), flush=True)


def _measure(name: str, gateway: RunningGateway, key: str, rounds: int) -> str:
    minted = json.dumps({"name": "flood", "scopes": ["admin", "mcp"]}).encode()
    evil = gateway.send("POST", "/tenants/evil/keys", minted)["key"]
    calm: list[float] = []
    flooded: list[float] = []
    seen: Counter[str] = Counter()
    list(_latencies(gateway.port, key))
    for _ in range(rounds):
        calm += _latencies(gateway.port, key)
        with _flooding(name, gateway.port, evil, seen):
            flooded += _latencies(gateway.port, key)
    before, during = statistics.median(calm), statistics.median(flooded)
    worst = max(flooded)
    shown = f"{name}: median {before:.2f} ms -> {during:.2f} ms, x {during / before:.2f}; worst {worst:.0f} ms"
    return f"{shown}; answers of the flood {dict(sorted(seen.items()))}"


def _latencies(port: int, key: str) -> Iterator[float]:
    """Make calls for one window; yield the milliseconds of each."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {
        "authorization": f"Bearer {key}",
        "accept": ACCEPT,
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "hello",
    }
    body, until = json.dumps(_CALL).encode(), time.monotonic() + _WINDOW_S
    while time.monotonic() < until:
        began = time.perf_counter()
        client.request("POST", "/t/third/mcp", body, headers)
        answer = client.getresponse()
        answer.read()
        if answer.status != http.client.OK:
            raise SystemExit(f"a call of the neighbour failed: {answer.status}")
        yield (time.perf_counter() - began) * 1000
        time.sleep(0.002)  # leaves most of the machine to the flood
    client.close()


@contextmanager
def _flooding(name: str, port: int, key: str, seen: Counter[str]) -> Generator[None]:
    command = [sys.executable, "-m", "benchmarks.floods", "--flood", name, str(port), key]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # the flood runs at its full rate
        yield
        seen.update(json.loads(child.communicate(timeout=60)[0]))


def _request(name: str, key: str) -> bytes:
    if name == "validate":
        fields = {f"field_{place}": {"type": "string", "description": "x" * 60} for place in range(1000)}
        definition = {"name": "big", "description": "d", "inputSchema": {"type": "object", "properties": fields}}
        body = json.dumps({"definition": definition, "handler": _TOOL["handler"]}).encode()
        path = "POST /admin/v1/tenants/evil/tools/validate"
    else:
        path, body = "GET /admin/v1/tenants/evil/tools", b""
    if name.startswith("wrong keys"):
        key = mint_key().text
    credential = "" if name == "no credential" else f"authorization: Bearer {key}\r\n"
    head = f"{path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{credential}content-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


async def _send_flood(name: str, port: int, key: str) -> dict[str, int]:
    """Send the flood until stdin ends; return the statuses of the responses.

    Prints "ready" when as many responses as connections have arrived.
    """
    rate, connections = _FLOODS[name]
    fixed = _request(name, key)
    seen: Counter[str] = Counter()
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    due = [time.monotonic()]

    async def send() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while not over.done():
            now = time.monotonic()
            at = due[0] = max(due[0] + 1 / rate, now - 0.05)
            await asyncio.sleep(at - now)  # keeps the offered rate
            writer.write(_request(name, key) if name.startswith("wrong keys") else fixed)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length[15:]))
            seen[head[9:12].decode()] += 1
            if seen.total() == connections:
                print("ready", flush=True)
            if b"connection: close" in head.lower():
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    await asyncio.gather(*(send() for _ in range(connections)), return_exceptions=True)
    return dict(seen)


if __name__ == "__main__":
    main()
