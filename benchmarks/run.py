"""`make bench`: CPU per call of the gateway beside a bare proxy, start-up time and idle memory, as one table.

CPU is what the scheduler billed to the process (all threads), so a busy machine changes it little; targets alternate
within the run and medians are printed with their spread. Compare ratios, not milliseconds.
"""

import argparse
import json
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_ns, free_port, load, resident_mb, running

OPERATOR = "benchmark-operator-key-of-32-characters"
MODERN = "2026-07-28"
HANDSHAKE = "2025-11-25"


@dataclass(slots=True)
class Target:
    """One way to make the same upstream call."""

    name: str
    port: int
    pid: int
    request: bytes
    cpu_us: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    p50_ms: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    p99_ms: dict[int, list[float]] = field(default_factory=dict[int, list[float]])


class Admin:
    """The admin API of the measured gateway."""

    def __init__(self, url: str) -> None:
        self._url = url

    def send(self, method: str, path: str, body: object = None) -> Any:
        """One request; the decoded answer."""
        request = urllib.request.Request(
            f"{self._url}/admin/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {OPERATOR}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or b"null")

    def tenant(self, slug: str, document: dict[str, Any]) -> str:
        """A tenant with the document imported; its key."""
        self.send("POST", "/tenants", {"slug": slug})
        self.send("PUT", f"/tenants/{slug}/policy", {"limits": {"calls_per_second": 1e6, "burst": 1_000_000}})
        self.send("POST", f"/tenants/{slug}/sources", {"name": "bench", "document": document})
        key: str = self.send("POST", f"/tenants/{slug}/keys", {"name": "bench", "scopes": ["mcp"]})["key"]
        return key


def document(upstream_port: int, tools: int) -> dict[str, Any]:
    """An OpenAPI document with this many operations; the first is the one that is called."""
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
        {"name": "v", "in": "query", "schema": {"type": "string"}},
    ]
    paths = {
        path: {"get": {"operationId": name, "parameters": parameters, "responses": {"200": {"description": "ok"}}}}
        for path, name in [
            ("/pets/{id}", "get_pet"),
            *((f"/s{number}/things/{{id}}", f"list_things_{number:04}") for number in range(tools - 1)),
        ]
    }
    server = {"url": f"http://127.0.0.1:{upstream_port}"}
    return {"openapi": "3.1.0", "info": {"title": "bench", "version": "1"}, "servers": [server], "paths": paths}


def post(path: str, body: object, headers: dict[str, str]) -> bytes:
    """A raw HTTP request."""
    raw = json.dumps(body).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}{lines}content-length: {len(raw)}\r\n\r\n".encode() + raw


def call(key: str, slug: str, session: str | None = None) -> bytes:
    """A tools/call in 2026-07-28, or in a session of the handshake era."""
    params: dict[str, Any] = {"name": "get_pet", "arguments": {"id": 7, "v": "1"}}
    headers = {"authorization": f"Bearer {key}", "accept": "application/json, text/event-stream"}
    if session is None:
        meta: dict[str, Any] = {"protocolVersion": MODERN, "clientCapabilities": {}}
        params["_meta"] = {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()}
        headers |= {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "get_pet"}
    else:
        headers |= {"mcp-protocol-version": HANDSHAKE, "mcp-session-id": session}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return post(f"/t/{slug}/mcp", body, headers)


def open_session(url: str, slug: str, key: str) -> str:
    """The id of a new session of the handshake era."""
    params = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    request = urllib.request.Request(
        f"{url}/t/{slug}/mcp",
        data=json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode(),
        headers={
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        },
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        session: str = answer.headers["mcp-session-id"]
        return session


def measure(targets: list[Target], *, connections: int, calls: int, rounds: int) -> None:
    """Load each target in turn, several times."""
    for _ in range(rounds):
        for target in targets:
            load(target.port, target.request, connections=connections, calls=connections * 20)
            before = cpu_ns(target.pid)
            seen = load(target.port, target.request, connections=connections, calls=calls)
            target.cpu_us.setdefault(connections, []).append((cpu_ns(target.pid) - before) / seen["calls"] / 1000)
            target.p50_ms.setdefault(connections, []).append(seen["p50_ms"])
            target.p99_ms.setdefault(connections, []).append(seen["p99_ms"])


def table(targets: list[Target], limit: Target, concurrencies: list[int]) -> list[str]:
    """The figures as Markdown rows."""
    rows = [
        "| target | connections | CPU per call, µs (spread) | ratio to the proxy | p50 ms | p99 ms |",
        "|---|---|---|---|---|---|",
    ]
    for connections in concurrencies:
        floor = statistics.median(limit.cpu_us[connections])
        for target in targets:
            seen = target.cpu_us[connections]
            middle = statistics.median(seen)
            p50, p99 = statistics.median(target.p50_ms[connections]), statistics.median(target.p99_ms[connections])
            rows.append(
                f"| {target.name} | {connections} | {middle:.0f} ({min(seen):.0f}–{max(seen):.0f}) "
                f"| {middle / floor:.2f} | {p50:.2f} | {p99:.2f} |"
            )
    return rows


def timed_start(data_dir: Path, upstream_port: int) -> tuple[float, float]:
    """Seconds from start to ready with data present, and resident MB when idle."""
    port = free_port()
    started = time.monotonic()
    with _gateway(data_dir, port, upstream_port) as child:
        return time.monotonic() - started, resident_mb(child.pid)


def _gateway(data_dir: Path, port: int, upstream_port: int) -> Any:
    environment = {
        "GATEWAY_OPERATOR_KEY": OPERATOR,
        "GATEWAY_EGRESS_ALLOW": f"127.0.0.1:{upstream_port}",
        "GATEWAY_LOG_LEVEL": "warning",
    }
    arguments = ["-m", "gateway", "serve", "--port", str(port), "--data-dir", str(data_dir)]
    return running(arguments, f"http://127.0.0.1:{port}/readyz", environment)


def calls_table(
    url: str, child_pid: int, ports: dict[str, int], pids: dict[str, int], options: argparse.Namespace
) -> list[str]:
    """CPU per call of every target."""
    admin = Admin(url)
    port = ports["gateway"]
    limit = Target("bare Starlette + aiohttp proxy", ports["proxy"], pids["proxy"], post("/", {}, {}))
    direct = Target(
        "the upstream itself",
        ports["upstream"],
        pids["upstream"],
        b"GET /pets/7?v=1 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n",
    )
    targets = [direct, limit]
    build: Callable[[int], str] = lambda tools: admin.tenant(f"tools-{tools}", document(ports["upstream"], tools))  # noqa: E731
    for tools in (1, 1000):
        key, slug = build(tools), f"tools-{tools}"
        targets.append(Target(f"gateway, 2026-07-28, {tools} tools", port, child_pid, call(key, slug)))
        session = open_session(url, slug, key)
        targets.append(
            Target(f"gateway, {HANDSHAKE} session, {tools} tools", port, child_pid, call(key, slug, session))
        )
    for connections in options.connections:
        measure(targets, connections=connections, calls=options.calls, rounds=options.rounds)
    return table(targets, limit, options.connections)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--write", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gwb") as folder:
        ports = {name: free_port() for name in ("upstream", "proxy", "gateway")}
        url = f"http://127.0.0.1:{ports['gateway']}"
        data_dir = Path(folder)
        upstream, proxy = (
            ["-m", "benchmarks.targets", "upstream", str(ports["upstream"])],
            ["-m", "benchmarks.targets", "proxy", str(ports["proxy"]), str(ports["upstream"])],
        )
        with (
            running(upstream, f"http://127.0.0.1:{ports['upstream']}/pets/7") as first,
            running(proxy, f"http://127.0.0.1:{ports['proxy']}/") as second,
        ):
            with _gateway(data_dir, ports["gateway"], ports["upstream"]) as child:
                pids = {"upstream": first.pid, "proxy": second.pid}
                rows = calls_table(url, child.pid, ports, pids, options)
            starts = [timed_start(data_dir, ports["upstream"]) for _ in range(3)]
    seconds, memory = statistics.median(start for start, _ in starts), statistics.median(used for _, used in starts)
    rows += [
        "",
        f"Start to ready with embedded servers, data present: {seconds:.1f} s. Idle memory: {memory:.0f} MB resident.",
    ]
    text = "\n".join(rows)
    print(text)
    if options.write:
        options.write.write_text(f"# Benchmarks\n\nWritten by `make bench`.\n\n{text}\n")


if __name__ == "__main__":
    main()
