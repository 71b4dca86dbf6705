"""`python -m benchmarks.large_answers`: effect of one tenant's large answers on another tenant, and on memory.

A gateway with its default limits serves two tenants. The upstream of one answers 9.4 MiB of JSON, and one of its
clients makes many calls at once. The other tenant calls a tool of its own every 20 ms. Upstream and load run at
niceness 15, so that the figures are those of the gateway.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Table, percentile
from benchmarks.gateways import RunningGateway, running_gateway, scratch
from benchmarks.processes import free_port, running
from benchmarks.requests import modern

LARGE, OTHER = "large", "other"
_NICENESS = 15
_PAUSE_S = 0.02
_SETTLE_S = 2.0
_TIMEOUT_S = 90.0
_CODE = re.compile(rb'"code":"([a-z._]+)"')
_COLUMNS = ("answer of 9.4 MiB", "calls at once", "took, s", "other median", "p95", "worst, ms", "CPU per answer, ms")
_MEMORY = ("memory before", "highest", "after, MiB", "results")
_NOTES = (
    "One tenant makes the calls. The other one calls a tool without an upstream every 20 ms; its figures are times.",
    "The bar (decision 65): another tenant's worst call at most 300 ms, and at most 400 MiB above the memory before.",
    "Memory is that of the replica; the children that read large results have at most 192 MiB each.",
)
_ITEM = {"type": "object", "properties": {"i": {"type": "integer"}}}
_OUTPUT = {"type": "object", "properties": {"items": {"type": "array", "items": _ITEM}}}
_TOOL: dict[str, Any] = {
    "definition": {"name": "hello", "description": "Greets.", "inputSchema": {"type": "object", "properties": {}}},
    "handler": {"kind": "static", "content": [{"type": "text", "text": "hello"}]},
}


def _objects() -> bytes:
    items = [{"i": i, "a": {"b": {"c": "x" * 20}}, "t": "aaaaaaaaab" * 5} for i in range(85_000)]
    return json.dumps({"items": items}).encode()


_BODIES: Mapping[str, Callable[[], bytes]] = {
    "empties": lambda: b'{"items":[' + b",".join([b"{}"] * 3_200_000) + b"]}",
    "objects": _objects,
    "numbers": lambda: b'{"items":[' + b",".join([b"1"] * 4_900_000) + b"]}",
    "floats": lambda: b'{"items":[' + b",".join([b"1.5e300"] * 1_230_000) + b"]}",
    "nested": lambda: b"[" + b",".join([b"[[[[[]]]]]"] * 900_000) + b"]",
    "members": lambda: b"{" + b",".join(b'"%06x":0' % i for i in range(850_000)) + b"}",
    "text": lambda: b'"' + b"a\\n" * 3_280_000 + b'"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row: the shape of the answer, the number of calls, and the way that the result takes."""

    shape: str
    calls: int = 64
    tool: str = "plain"
    profile: str = ""

    @property
    def title(self) -> str:
        """The name of the row."""
        way = {"plain": "", "checked": ", output schema", "kept": ", one member kept"}[self.tool]
        return f"{self.shape}{', summary' if self.profile else ''}{way}"


CASES = (
    Case(shape="empties"),
    Case(shape="empties", profile="summary"),
    Case(shape="empties", tool="checked"),
    Case(shape="objects"),
    Case(shape="objects", profile="summary"),
    Case(shape="empties", calls=8),
)
_FURTHER = (
    *(Case(shape=shape) for shape in ("numbers", "floats", "nested", "members", "text")),
    *(Case(shape=shape, profile="summary") for shape in ("numbers", "nested", "members", "text")),
    *(Case(shape=shape, tool="checked") for shape in ("objects", "numbers", "members")),
    *(Case(shape=shape, tool="kept") for shape in ("objects", "empties")),
)


def main() -> None:
    """Measure every case and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_answers", description=__doc__)
    parser.add_argument("--all", action="store_true", help="more shapes, and results of which one member is kept")
    parser.add_argument("--upstream", metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--calls", nargs=3, metavar=("PORT", "RAW", "COUNT"), help=argparse.SUPPRESS)
    parser.add_argument("--watch", nargs=2, metavar=("PORT", "RAW"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        asyncio.run(_serve(int(options.upstream)))
    elif options.calls:
        os.nice(_NICENESS)
        print(json.dumps(asyncio.run(_call_at_once(*options.calls))))
    elif options.watch:
        _watch(*options.watch)
    else:
        print(measure_large_answers((*CASES, *_FURTHER) if options.all else CASES).render())


def measure_large_answers(cases: Sequence[Case] = CASES) -> Table:
    """Measure these cases in turn and return their table."""
    upstream_port = free_port()
    command = ["-m", "benchmarks.large_answers", "--upstream", str(upstream_port)]
    with (
        running(command, f"http://127.0.0.1:{upstream_port}/"),
        scratch() as folder,
        running_gateway(folder, upstream_port=upstream_port, limits={}) as gateway,
    ):
        keys = {slug: _furnish(gateway, slug, upstream_port) for slug in (LARGE, OTHER)}
        rows = []
        for case in cases:
            rows.append(_row(gateway, keys, case))
            print("; ".join(rows[-1]), file=sys.stderr, flush=True)
    return Table(title="Large answers", columns=(*_COLUMNS, *_MEMORY), rows=tuple(rows), notes=_NOTES)


def _furnish(gateway: RunningGateway, slug: str, upstream_port: int) -> str:
    """Create a tenant with the default limits and its tools; return its key."""
    gateway.send("POST", "/tenants", json.dumps({"slug": slug}).encode())
    origin = f"http://127.0.0.1:{upstream_port}"
    gateway.send("PUT", f"/tenants/{slug}/policy", json.dumps({"http_origins": [origin]}).encode())
    gateway.send("POST", f"/tenants/{slug}/tools", json.dumps(_TOOL).encode())
    profile = {"name": "summary", "summary_threshold": 4096}
    gateway.send("POST", f"/tenants/{slug}/profiles", json.dumps(profile).encode())
    for shape in _BODIES:
        handler: dict[str, Any] = {"kind": "http", "method": "GET", "url": f"{origin}/{shape}"}
        for tool, extra in (("plain", {}), ("checked", {"outputSchema": _OUTPUT}), ("kept", {})):
            given = handler | ({"result": {"keep": ["/items/0"]}} if tool == "kept" else {})
            schema = {"type": "object", "properties": {}}
            definition = {"name": f"{shape}_{tool}", "description": "x", "inputSchema": schema, **extra}
            gateway.send(
                "POST", f"/tenants/{slug}/tools", json.dumps({"definition": definition, "handler": given}).encode()
            )
    wanted = b'{"name":"bench","scopes":["mcp"]}'
    key: str = gateway.send("POST", f"/tenants/{slug}/keys", wanted)["key"]
    return key


def _row(gateway: RunningGateway, keys: Mapping[str, str], case: Case) -> tuple[str, ...]:
    before = _memory(gateway.pid, "VmRSS")
    Path(f"/proc/{gateway.pid}/clear_refs").write_text("5")  # resets the highest value
    path = f"/t/{LARGE}/{case.profile}/mcp" if case.profile else f"/t/{LARGE}/mcp"
    raw = modern(path, "tools/call", {"name": f"{case.shape}_{case.tool}", "arguments": {}}, key=keys[LARGE])
    with _watching(gateway.port, keys[OTHER]) as waits:
        began, used = time.monotonic(), _cpu_s(gateway.pid)
        command = ["--calls", str(gateway.port), raw.decode(), str(case.calls)]
        counts: dict[str, int] = json.loads(_run(command))
        took, used = time.monotonic() - began, _cpu_s(gateway.pid) - used
    time.sleep(_SETTLE_S)  # memory is given back after the last result
    milliseconds = [wait * 1000 for wait in waits]
    figures = (*(percentile(milliseconds, share) for share in (50, 95)), max(milliseconds), used * 1000 / case.calls)
    memory = (before, _memory(gateway.pid, "VmHWM"), _memory(gateway.pid, "VmRSS"))
    shown = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    return (case.title, str(case.calls), f"{took:.1f}", *(f"{one:.0f}" for one in (*figures, *memory)), shown)


def _run(arguments: Sequence[str]) -> bytes:
    command = [sys.executable, "-m", "benchmarks.large_answers", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout


@contextmanager
def _watching(port: int, key: str) -> Generator[list[float]]:
    """Collect the seconds of the other tenant's calls while the block runs."""
    raw = modern(f"/t/{OTHER}/mcp", "tools/call", {"name": "hello", "arguments": {}}, key=key)
    command = [sys.executable, "-m", "benchmarks.large_answers", "--watch", str(port), raw.decode()]
    waits: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # the first calls have been answered
        yield waits
        waits += json.loads(child.communicate(timeout=60)[0])


def _watch(port: str, raw: str) -> None:
    """Call until stdin ends; print the seconds of each call."""
    waits = asyncio.run(_call_evenly(int(port), raw.encode()))
    print(json.dumps(waits))


async def _call_evenly(port: int, raw: bytes) -> list[float]:
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    waits: list[float] = []
    while not over.done():
        began = time.perf_counter()
        writer.write(raw)
        head, body = await _read(reader)
        if not head.startswith(b"HTTP/1.1 200") or b'"result"' not in body:
            raise SystemExit(f"a call of the other tenant failed: {head[:200]!r} {body[:200]!r}")
        waits.append(time.perf_counter() - began)
        if len(waits) == 5:
            print("ready", flush=True)
        await asyncio.sleep(_PAUSE_S)
    writer.close()
    return waits[5:]


async def _call_at_once(port: str, raw: str, count: str) -> dict[str, int]:
    """Make the calls at once, each over a connection of its own; return their outcomes."""

    async def call() -> str:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=2**24)
                writer.write(raw.encode())
                _, body = await _read(reader)
                writer.close()
        except (OSError, EOFError, TimeoutError) as error:
            return type(error).__name__
        code = _CODE.search(body[-4096:]) or _CODE.search(body[:4096])
        return "ok" if code is None else code[1].decode()

    return Counter(await asyncio.gather(*(call() for _ in range(int(count)))))


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Read one response with a known length, or in chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: *(\d+)", head.lower())
    if length:
        return head, await reader.readexactly(int(length[1]))
    body = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return head, body


async def _serve(port: int) -> None:
    """Answer each GET of a shape with its body."""
    os.nice(_NICENESS)
    bodies = {shape: make() for shape, make in _BODIES.items()}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = bodies.get(head.split(b" ", 2)[1][1:].decode(), b"{}")
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
                )
                for start in range(0, len(body), 2**20):
                    writer.write(body[start : start + 2**20])
                    await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    await server.serve_forever()


def _cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used, with those of threads that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, name: str) -> int:
    """Return a figure of `/proc/PID/status` in MiB."""
    found = re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) // 1024 if found else 0


if __name__ == "__main__":
    main()
