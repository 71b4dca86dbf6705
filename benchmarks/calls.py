"""Cost of one `tools/call`: upstream, bare proxy, gateway in both eras, FastMCP. Same upstream, same arguments."""

import json
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.figures import Table, ratio, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_upstream, scratch
from benchmarks.measure import Effort, LoadGenerator, Target, alternate, busiest, check
from benchmarks.peers import FastMcp
from benchmarks.processes import Failed, free_port, running
from benchmarks.requests import CALL, HANDSHAKE, MODERN, PROTOCOL, document, get, handshake, modern, post

_CONNECTIONS = (1, 16)
_METHOD = "tools/call"
_LONG_WAY: dict[str, Any] = {**CALL, "_meta": {f"{PROTOCOL}/odd": 1}}
"""The same call, with a `_meta` member that the fast path leaves to the SDK."""

_NOTES = (
    (
        "CPU is what the scheduler billed to all threads of the measured process: medians over the rounds, range in "
        "parentheses. It is the mean of all calls, so rare dear ones (garbage collection) put it above the p50 time. "
        "Compare ratios at the same number of connections."
    ),
    "The proxy does one upstream request per call and nothing else: no protocol, key, limit, validation or audit.",
    "Calls through the SDK carry a member of `_meta` that the short way in front of it leaves to the SDK (decision 5).",
    "A slow target makes fewer calls: the time it may take is bounded.",
)
_COLUMNS = (
    "target",
    "connections",
    "CPU per call, µs",
    "ratio to the proxy",
    "CPU of its PostgreSQL and Redis, µs",
    "calls/s",
    "p50 ms",
    "p99 ms",
    "calls measured",
)


def measure_calls(generator: LoadGenerator, effort: Effort, fastmcp: FastMcp | None, *, tenants: int) -> Table:
    """Measure calls and return their table: for one tenant, and for this many."""
    with ExitStack() as stack:
        port, pid = stack.enter_context(running_upstream())
        direct = Target("the upstream itself", port, pid, [get("/pets/7?v=1")])
        limit = stack.enter_context(_proxy(port))
        folder = stack.enter_context(scratch())
        gateway = stack.enter_context(running_gateway(folder, upstream_port=port))
        ours = [direct, limit, *_single(gateway, port), *_federated(gateway, port), *_many(gateway, port, tenants)]
        peers: list[Target] = []
        notes: list[str] = []
        for tools in (1, 100):
            try:
                peers += _peers(stack, fastmcp, tools, port, seconds=effort.peer_seconds)
            except Failed as failed:
                notes.append(f"FastMCP with {tools} tools: {str(failed)[:200]}")
        alternate(generator, [*ours, *peers], connections=_CONNECTIONS, effort=effort)
    check(ours)
    return _table([*ours, *peers], limit, direct, notes if fastmcp else ["FastMCP could not be installed."])


@contextmanager
def _proxy(upstream_port: int) -> Generator[Target]:
    port = free_port()
    arguments = ["-m", "benchmarks.targets", "proxy", str(port), str(upstream_port)]
    with running(arguments, f"http://127.0.0.1:{port}/") as child:
        yield Target("bare Starlette + aiohttp proxy", port, child.pid, [post("/", {})])


def _single(gateway: RunningGateway, upstream_port: int) -> Generator[Target]:
    """Yield targets of one tenant, with few and with many tools."""
    for tools in (1, 100, 1000):
        slug = f"tools-{tools}"
        key = gateway.tenant(slug)
        gateway.add_source(slug, json.dumps(document(upstream_port, tools)).encode())
        yield from _eras(gateway, f"{tools} tools" if tools > 1 else "1 tool", [(slug, key)])
        if tools == 1:
            yield from _eras(gateway, "1 tool, through the SDK", [(slug, key)], _LONG_WAY)
            token = gateway.accept_token(slug, f"http://127.0.0.1:{upstream_port}")
            yield from _eras(gateway, "1 tool, with an access token", [(slug, token)])


def _federated(gateway: RunningGateway, upstream_port: int) -> Generator[Target]:
    """Yield targets of one tenant each, whose tool is that of an MCP server of the same revision as the client."""
    for number, revision in enumerate((MODERN, HANDSHAKE)):
        slug = f"federated-{revision}"
        key = gateway.tenant(slug)
        gateway.attach(slug, f"http://127.0.0.1:{upstream_port}/mcp/{revision}", CALL["name"])
        yield list(_eras(gateway, "1 tool of another MCP server", [(slug, key)]))[number]


def _many(gateway: RunningGateway, upstream_port: int, tenants: int) -> Generator[Target]:
    """Yield targets of many tenants with one tool each; each call goes to the next tenant."""
    raw = json.dumps(document(upstream_port, 1)).encode()
    keys: list[tuple[str, str]] = []
    for number in range(tenants):
        slug = f"tenant-{number}"
        keys.append((slug, gateway.tenant(slug)))
        gateway.add_source(slug, raw)
    yield from _eras(gateway, f"1 tool, {tenants} tenants in turn", keys)


def _eras(
    gateway: RunningGateway, name: str, keys: list[tuple[str, str]], call: dict[str, Any] = CALL
) -> Generator[Target]:
    modern_calls = [modern(f"/t/{slug}/mcp", _METHOD, call, key=key) for slug, key in keys]
    yield Target(f"gateway, {MODERN}, {name}", gateway.port, gateway.pid, modern_calls)
    session_calls = [
        handshake(f"/t/{slug}/mcp", _METHOD, call, key=key, session=gateway.open_session(slug, key))
        for slug, key in keys
    ]
    yield Target(f"gateway, {HANDSHAKE}, {name}", gateway.port, gateway.pid, session_calls)


def _peers(
    stack: ExitStack, fastmcp: FastMcp | None, tools: int, upstream_port: int, *, seconds: float
) -> list[Target]:
    if fastmcp is None:
        return []
    path = stack.enter_context(scratch()) / "document.json"
    path.write_text(json.dumps(document(upstream_port, tools)))
    port, pid = stack.enter_context(fastmcp.serving(path, upstream_port))
    shown = f"{tools} tools" if tools > 1 else "1 tool"
    eras = {MODERN: modern("/mcp", _METHOD, CALL), f"{HANDSHAKE} without sessions": handshake("/mcp", _METHOD, CALL)}
    return [
        Target(f"FastMCP {fastmcp.version}, {era}, {shown}", port, pid, [request], seconds=seconds)
        for era, request in eras.items()
    ]


def _table(targets: list[Target], limit: Target, direct: Target, notes: list[str]) -> Table:
    rows = [_row(target, limit, count) for count in _CONNECTIONS for target in targets if target.failure is None]
    failed = [f"Not measured: {target.failure[:200]}" for target in targets if target.failure is not None]
    notes = [*_NOTES, _generator_note(targets, direct), *failed, *notes]
    return Table(title="Calls", columns=_COLUMNS, rows=tuple(rows), notes=tuple(notes))


def _generator_note(targets: list[Target], direct: Target) -> str:
    reached = max(direct.each(_CONNECTIONS[-1], "rate"))
    best = max(max(target.each(_CONNECTIONS[-1], "rate"), default=0) for target in targets if "gateway" in target.name)
    others = [target for target in targets if target is not direct]
    return (
        f"The load generator makes {reached:,.0f} calls/s of the upstream itself, {reached / best:.1f} times the "
        f"gateway's best rate; for no other target was it busier than {busiest(others):.0%} of a core."
    )


def _row(target: Target, limit: Target, connections: int) -> tuple[str, ...]:
    cpu = target.each(connections, "cpu_us")
    below = target.each(connections, "below_us")
    return (
        target.name,
        str(connections),
        spread(cpu),
        ratio(cpu, limit.each(connections, "cpu_us")),
        spread(below) if any(below) else "–",
        spread(target.each(connections, "rate")),
        spread(target.each(connections, "p50_ms"), 2),
        spread(target.each(connections, "p99_ms"), 2),
        f"{sum(target.each(connections, 'calls')):,.0f}",
    )
