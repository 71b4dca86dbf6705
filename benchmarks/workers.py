"""Calls with one process and with two workers, at 256 connections: share of each worker, CPU per call, rate, memory."""

import json
import os
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from benchmarks.figures import Table, ratio, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_servers, running_upstream, scratch
from benchmarks.measure import Effort, LoadGenerator, Target
from benchmarks.processes import children, cpu_ns, descendants, unique_memory_mb
from benchmarks.requests import CALL, document, modern

_CONNECTIONS = 256
_COLUMNS = (
    "processes",
    "calls/s",
    "CPU per call of the gateway, µs (g)",
    "of all else, µs (o)",
    "calls/s, ratio to one process",
    "bar 0.9 × 2g/(g+o)",
    "CPU per call, ratio to one process",
    "share of the calls of each worker, %",
    "memory of its own, MB",
)
_TENANTS = 16
"""A tenant may have 64 calls at one upstream at once."""
_METHOD = "tools/call"
_WARM_CALLS = 2000
_CALLS_FACTOR = 4
"""Times the calls of other parts: more connections need more calls until all are in use."""
_NOTES = (
    "16 tenants in turn, one tool of an imported document each, calls of 2026-07-28, the same PostgreSQL and Redis.",
    "Everything shares two cores. g and o are those of one process; o includes load generator, upstream and servers.",
    "The share of a worker is that of the CPU of all workers.",
    "Memory of its own ends with the process (USS): of one process; or of the supervisor and all processes below.",
)


@dataclass(slots=True)
class _Seen:
    """The figures of one gateway, one of each round."""

    gateway: RunningGateway
    rates: list[float] = field(default_factory=list[float])
    own_us: list[float] = field(default_factory=list[float])
    other_us: list[float] = field(default_factory=list[float])
    shares: list[float] = field(default_factory=list[float])
    memory_mb: Sequence[float] = ()

    @property
    def processes(self) -> Sequence[int]:
        """The process that was started, and those below it."""
        return [self.gateway.pid, *descendants(self.gateway.pid)]

    @property
    def workers(self) -> Sequence[int]:
        """The processes that serve: the children of the supervisor's fork server, or the process itself."""
        forked = [pid for child in children(self.gateway.pid) for pid in children(child)]
        return forked or [self.gateway.pid]


def measure_workers(generator: LoadGenerator, effort: Effort) -> Table:
    """Measure both in turn, and return their table."""
    with ExitStack() as stack:
        upstream_port, _ = stack.enter_context(running_upstream())
        servers = stack.enter_context(running_servers())
        one, two = (
            running_gateway(stack.enter_context(scratch()), upstream_port=upstream_port, servers=servers, workers=count)
            for count in (1, 2)
        )
        first = _Seen(stack.enter_context(one))
        requests = [_prepare(first.gateway, f"tenant-{number}", upstream_port) for number in range(_TENANTS)]
        second = _Seen(stack.enter_context(two))
        for _ in range(effort.rounds):
            for seen in (first, second):
                _load(generator, effort, seen, requests)
        for seen in (first, second):
            seen.memory_mb = [unique_memory_mb(pid) for pid in seen.processes]
    return _table(first, second)


def _prepare(gateway: RunningGateway, slug: str, upstream_port: int) -> bytes:
    """Create a tenant with one tool; return the request that calls it."""
    key = gateway.tenant(slug)
    gateway.add_source(slug, json.dumps(document(upstream_port, 1)).encode())
    return modern(f"/t/{slug}/mcp", _METHOD, CALL, key=key)


def _load(generator: LoadGenerator, effort: Effort, seen: _Seen, requests: Sequence[bytes]) -> None:
    """Make one load, and account the CPU of all processes of this benchmark."""
    target = Target(
        f"{len(seen.workers)} workers",
        seen.gateway.port,
        seen.gateway.pid,
        requests,
    )
    generator.load(target, connections=_CONNECTIONS, calls=_WARM_CALLS, seconds=effort.seconds)
    everyone = descendants(os.getpid())
    before = {pid: cpu_ns(pid) for pid in everyone}
    figures = generator.load(
        target, connections=_CONNECTIONS, calls=_CALLS_FACTOR * effort.calls, seconds=effort.seconds
    )
    used = {pid: cpu_ns(pid) - before[pid] for pid in everyone}
    calls = figures["calls"]
    own = sum(used[pid] for pid in seen.processes)
    serving = [used[pid] for pid in seen.workers]
    seen.rates.append(calls / figures["wall_s"])
    seen.own_us.append(own / calls / 1000)
    seen.other_us.append((sum(used.values()) - own) / calls / 1000)
    seen.shares += [100 * each / sum(serving) for each in serving]


def _table(one: _Seen, two: _Seen) -> Table:
    own, other = statistics.median(one.own_us), statistics.median(one.other_us)
    bar = f"{0.9 * 2 * own / (own + other):.2f}"
    rows = [
        (
            name,
            spread(seen.rates),
            spread(seen.own_us),
            spread(seen.other_us),
            ratio(seen.rates, one.rates),
            bar if seen is two else "–",
            ratio(seen.own_us, one.own_us),
            spread(seen.shares),
            ", ".join(f"{each:.0f}" for each in seen.memory_mb),
        )
        for name, seen in (("one process", one), ("two workers", two))
    ]
    return Table(title="Workers", columns=_COLUMNS, rows=tuple(rows), notes=_NOTES)
