"""Blocking of the event loop while large documents are imported and calls go on.

`python -m benchmarks.loop` runs the application in this process and its clients in another. It prints the longest gaps
with the stack of the loop at that time. `watching` watches any block that runs in an event loop.
"""

import asyncio
import contextlib
import gc
import gzip
import json
import subprocess
import sys
import threading
import time
import traceback
import urllib.request
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from tests.support.gateway import OPERATOR_KEY, running_gateway
from tests.support.servers import running_servers
from tests.support.upstream import recording_upstream

SPECS = Path(__file__).parents[1] / ".." / "shared" / "specs"
LATE_S = 0.02
"""A longer gap is recorded with the stack of the loop."""

_BEAT_S = 0.001
_SHOWN = 12
_DOCUMENT = "github.json"


@dataclass(slots=True)
class Gap:
    """A time in which the loop ran no other task.

    `loop_ms` is the CPU time of the loop's thread in the gap, `process_ms` that of all threads. If only `loop_ms` is
    small, another thread held the GIL. If both are small, the machine was busy.
    """

    wall_ms: float
    loop_ms: float
    process_ms: float
    stack: str


@dataclass(slots=True)
class Gaps:
    """All recorded gaps."""

    found: list[Gap] = field(default_factory=list[Gap])

    def longest(self, count: int) -> Sequence[Gap]:
        """Return the longest gaps, longest first."""
        return sorted(self.found, key=lambda gap: -gap.wall_ms)[:count]


@asynccontextmanager
async def watching() -> AsyncGenerator[Gaps]:
    """Record each gap of the running loop while the block runs."""
    gaps = Gaps()
    last = [time.perf_counter()]
    stacks: list[str] = []
    done = threading.Event()
    thread = threading.get_ident()

    frames = sys._current_frames  # noqa: SLF001  # the only access to another thread's stack

    def look() -> None:
        while not done.wait(_BEAT_S):
            if time.perf_counter() - last[0] > LATE_S and (frame := frames().get(thread)):
                stacks.append("".join(traceback.format_stack(frame)[-4:]))

    async def beat() -> None:
        used, whole = time.thread_time(), time.process_time()
        while True:
            stacks.clear()
            await asyncio.sleep(_BEAT_S)
            now = time.perf_counter()
            if now - last[0] > LATE_S:
                spent = (time.thread_time() - used) * 1000, (time.process_time() - whole) * 1000
                gaps.found.append(Gap((now - last[0]) * 1000, *spent, stacks[len(stacks) // 2] if stacks else ""))
            last[0], used, whole = now, time.thread_time(), time.process_time()

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    heart = asyncio.create_task(beat())
    try:
        yield gaps
    finally:
        done.set()
        heart.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await heart
        watcher.join()


async def watch_import(*, as_text: bool) -> tuple[Gaps, dict[str, object]]:
    """Measure one import with concurrent calls; return the gaps of the application's loop and the clients' figures."""
    with running_servers() as servers, servers.database() as database:
        redis_url = servers.empty_redis()
        async with (
            recording_upstream() as upstream,
            running_gateway(database.app_url, redis_url, egress_allow=[upstream.authority]) as gateway,
        ):
            arguments = [sys.executable, "-m", "benchmarks.loop", gateway.url, upstream.url, str(int(as_text))]
            gc.collect()
            gc.freeze()  # as the gateway does when it starts to serve
            async with watching() as gaps:
                clients = await asyncio.create_subprocess_exec(*arguments, stdout=subprocess.PIPE)
                out, _ = await clients.communicate()
            return gaps, json.loads(out)


def run_clients(url: str, upstream: str, *, as_text: bool) -> dict[str, object]:
    """Import a large document while calling a tool of a small one; return the times of both."""
    operator = {"authorization": f"Bearer {OPERATOR_KEY}", "content-type": "application/json"}
    admin = f"{url}/admin/v1/tenants"
    _post(admin, {"slug": "bench"}, operator)
    small = {
        "openapi": "3.1.0",
        "info": {"title": "small", "version": "1"},
        "servers": [{"url": upstream}],
        "paths": {"/x": {"get": {"operationId": "ask", "responses": {}}}},
    }
    _post(f"{admin}/bench/sources", {"name": "small", "document": small}, operator)
    _post(f"{admin}/bench/policy", {"limits": {"calls_per_second": 1e6, "burst": 1_000_000}}, operator, method="PUT")
    key = json.loads(_post(f"{admin}/bench/keys", {"name": "k", "scopes": ["mcp"]}, operator))["key"]
    raw = gzip.decompress((SPECS / f"{_DOCUMENT}.gz").read_bytes())
    wanted = {"name": "large", "document": raw.decode() if as_text else json.loads(raw)}
    calls: list[float] = []
    done = threading.Event()
    caller = threading.Thread(target=_call, args=(url, key, calls, done))
    caller.start()
    started = time.perf_counter()
    _post(f"{admin}/bench/sources", wanted, operator)
    seconds = time.perf_counter() - started
    done.wait(0.5)  # the first calls on the new catalog belong to the import
    done.set()
    caller.join()
    calls.sort()
    return {"seconds": seconds, "calls": len(calls), "p50_ms": calls[len(calls) // 2], "longest_ms": calls[-1]}


def _call(url: str, key: str, calls: list[float], done: threading.Event) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "ask", "arguments": {}, "_meta": meta}
    headers = {
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "ask",
    }
    while not done.is_set():
        started = time.perf_counter()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = json.loads(_post(f"{url}/t/bench/mcp", body, headers))
        assert answer["result"]["isError"] is False, answer
        calls.append((time.perf_counter() - started) * 1000)
        done.wait(0.005)


def _post(url: str, body: object, headers: dict[str, str], *, method: str = "POST") -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        content: bytes = answer.read()
        return content


def main() -> None:
    """Measure an import of each form and print the gaps."""
    if len(sys.argv) > 1:
        url, upstream, form = sys.argv[1:]
        print(json.dumps(run_clients(url, upstream, as_text=form == "1")))
        return
    for as_text in (False, True):
        gaps, seen = uvloop.run(watch_import(as_text=as_text))
        print(f"\n{_DOCUMENT} as {'text' if as_text else 'object'}: {seen}")
        for gap in gaps.longest(_SHOWN):
            print(f"{gap.wall_ms:6.1f} ms (loop {gap.loop_ms:.1f}, process {gap.process_ms:.1f})\n{gap.stack}")


if __name__ == "__main__":
    main()
