"""Targets under load: each in turn, in several rounds, with CPU and latency."""

import json
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.processes import Failed, cpu_ns, descendants, end

_WARM_SHARE = 20
"""Calls per connection before the measurement starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The figures of one load."""

    calls: int
    cpu_us: float
    below_us: float
    generator_share: float
    rate: float
    p50_ms: float
    p99_ms: float


@dataclass(slots=True)
class Target:
    """A server under load, with its samples by number of connections."""

    name: str
    port: int
    pid: int
    requests: Sequence[bytes]
    samples: dict[int, list[Sample]] = field(default_factory=dict[int, list[Sample]])
    failure: str | None = None
    seconds: float | None = None

    def each(self, connections: int, name: str) -> list[float]:
        """Return one figure of every sample."""
        return [float(getattr(sample, name)) for sample in self.samples.get(connections, [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The effort per target: number of calls, longest duration in seconds, and rounds."""

    calls: int
    seconds: float
    peer_seconds: float
    rounds: int


class LoadGenerator:
    """The process that sends the requests."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child

    def load(self, target: Target, *, connections: int, calls: int, seconds: float) -> dict[str, Any]:
        """Run one load and return its figures.

        Raises:
            Failed: a response was not a success.
        """
        order = {
            "port": target.port,
            "requests": [request.decode("latin-1") for request in target.requests],
            "connections": connections,
            "calls": calls,
            "seconds": seconds,
        }
        if self._child.stdin is None or self._child.stdout is None:
            raise Failed("the load generator has no pipes")
        self._child.stdin.write(json.dumps(order).encode() + b"\n")
        self._child.stdin.flush()
        seen: dict[str, Any] = json.loads(self._child.stdout.readline() or b'{"failed": "the load generator ended"}')
        if "failed" in seen:
            raise Failed(f"{target.name}: {seen['failed']}")
        return seen

    def sample(self, target: Target, *, connections: int, calls: int, seconds: float, rest_s: float = 0.0) -> Sample:
        """Run one load after a warm-up and a pause of `rest_s`, and account its CPU.

        Raises:
            Failed: a response was not a success.
        """
        warm = max(connections, len(target.requests)) * _WARM_SHARE
        self.load(target, connections=connections, calls=min(calls, warm), seconds=seconds / 4)
        time.sleep(rest_s)  # until what the warm-up cached has expired: later calls are of callers that pause
        below = descendants(target.pid)
        own, others, mine = cpu_ns(target.pid), sum(map(cpu_ns, below)), cpu_ns(self._child.pid)
        seen = self.load(target, connections=connections, calls=calls, seconds=seconds)
        count, wall = seen["calls"], seen["wall_s"]
        return Sample(
            calls=count,
            cpu_us=(cpu_ns(target.pid) - own) / count / 1000,
            below_us=(sum(map(cpu_ns, below)) - others) / count / 1000,
            generator_share=(cpu_ns(self._child.pid) - mine) / wall / 1e9,
            rate=count / wall,
            p50_ms=seen["p50_ms"],
            p99_ms=seen["p99_ms"],
        )


@contextmanager
def load_generator() -> Generator[LoadGenerator]:
    """Run a load generator while the block runs."""
    child = subprocess.Popen([sys.executable, "-m", "benchmarks.load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield LoadGenerator(child)
    finally:
        end(child)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()


def alternate(
    generator: LoadGenerator, targets: Iterable[Target], *, connections: Sequence[int], effort: Effort
) -> None:
    """Load the targets in turn, round after round; a target that fails is marked and left out."""
    listed = list(targets)
    for _ in range(effort.rounds):
        for count in connections:
            for target in listed:
                if target.failure is not None:
                    continue
                try:
                    seconds = target.seconds or effort.seconds
                    seen = generator.sample(target, connections=count, calls=effort.calls, seconds=seconds)
                except Failed as failed:
                    target.failure = str(failed)
                    continue
                target.samples.setdefault(count, []).append(seen)


def busiest(targets: Iterable[Target]) -> float:
    """Return the largest share of a core that the load generator used for a target."""
    return max(sample.generator_share for target in targets for seen in target.samples.values() for sample in seen)


def check(targets: Iterable[Target]) -> None:
    """Refuse the figures if one of our targets failed.

    Raises:
        Failed: a target failed.
    """
    for target in targets:
        if target.failure is not None:
            raise Failed(target.failure)
