"""Cost of importing large public documents: time, memory, and blocking of the event loop."""

import gzip
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Table, spread
from benchmarks.gateways import RunningGateway, running_gateway, scratch
from benchmarks.peers import FastMcp
from benchmarks.prober import probing
from benchmarks.processes import Failed, cpu_ns, descendants, is_python, memory_mb

SPECS = Path(__file__).parents[1] / ".." / "shared" / "specs"
DOCUMENTS = {  # name in the tables and file: a small one, a medium one, the largest
    "Petstore": "petstore-v3.yaml",
    "Figma": "figma-31.yaml",
    "GitHub": "github.json",
    "Kubernetes": "kubernetes-full-v2.json",
    "Stripe": "stripe-2019.json",
    "OpenAI": "openai-31.yaml",
}
_COLUMNS = (
    "document",
    "MB",
    "tools",
    "seconds",
    "CPU of gateway and worker, s",
    "gateway's peak above idle, MB",
    "worker's peak, MB",
    "/healthz p99 ms",
    "/healthz longest ms",
    "FastMCP seconds",
    "FastMCP CPU, s",
    "FastMCP's peak above idle, MB",
)
_NOTES = (
    (
        "Seconds from sending the document to the admin API until its report is back: parsed, compiled, committed. "
        "Each import starts from a gateway that has imported nothing."
    ),
    (
        "/healthz is asked by another process, one request at a time with 2 ms between, while the import runs; "
        "idle: the same for half a second before it. It shows what blocks the event loop, and also a machine too busy "
        "to answer."
    ),
    "FastMCP: reading the document and from_openapi in a process of its own, without its start-up; it stores nothing.",
    (
        "The bar (DESIGN section 6) for the document of 13 MB: at most 6 s and 500 MB, the event loop never blocked "
        "for more than 50 ms."
    ),
)
URL = "https://api.example.com"
"""The server of documents that name none, which would otherwise have no tools."""
_SAMPLE_S = 0.02
_IDLE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """One import, measured from outside."""

    tools: int
    seconds: float
    cpu_s: float
    peak_mb: float
    worker_mb: float
    idle: dict[str, Any]
    during: dict[str, Any]


def measure_imports(documents: Sequence[str], rounds: int, fastmcp: FastMcp | None, *, peer_seconds: float) -> Table:
    """Measure imports and return their table; missing documents and failed imports are listed in its notes."""
    notes: list[str] = [*_NOTES]
    rows: list[tuple[str, ...]] = []
    for name in documents:
        path = SPECS / f"{DOCUMENTS[name]}.gz"
        if not path.is_file():
            notes.append(f"{name}: the document is not on this machine.")
            continue
        raw = gzip.decompress(path.read_bytes())
        peer = _peer(fastmcp, raw, peer_seconds)
        try:
            seen = [_import(raw) for _ in range(rounds)]
        except Failed as failed:
            notes.append(f"{name}: {str(failed)[:300]}")
            continue
        rows.append((name, f"{len(raw) / 1e6:.1f}", *_figures(seen), *peer))
    if fastmcp is None:
        notes.append("FastMCP could not be installed.")
    return Table(title="Imports", columns=_COLUMNS, rows=tuple(rows), notes=tuple(notes))


def _import(raw: bytes) -> _Import:
    with scratch() as folder, running_gateway(folder) as gateway:
        gateway.tenant("bench")
        idle = probing(gateway.port, lambda: time.sleep(_IDLE_S))[1]
        before = memory_mb(gateway.pid, "VmRSS")
        with _watching(gateway.pid) as workers:
            _reset_peak(gateway)
            cpu = cpu_ns(gateway.pid)
            started = time.perf_counter()
            (report, seconds), during = probing(
                gateway.port, lambda: (gateway.add_source("bench", raw, url=URL), time.perf_counter() - started)
            )
            peak = memory_mb(gateway.pid, "VmHWM")
            cpu = cpu_ns(gateway.pid) - cpu
    counts = report["counts"]
    return _Import(
        tools=counts["ok"] + counts["degraded"],
        seconds=seconds,
        cpu_s=(cpu + sum(used for _, used in workers.values())) / 1e9,
        peak_mb=peak - before,
        worker_mb=max((memory for memory, _ in workers.values()), default=0.0),
        idle=idle,
        during=during,
    )


def _reset_peak(gateway: RunningGateway) -> None:
    """Reset the kernel's record of peak memory (5: `man proc`, clear_refs)."""
    Path(f"/proc/{gateway.pid}/clear_refs").write_text("5")


@contextmanager
def _watching(pid: int) -> Generator[dict[int, tuple[float, int]]]:
    """Sample the Python processes below a process: peak MB and nanoseconds of CPU, by process id.

    Samples are frequent enough to catch short-lived processes.
    """
    seen: dict[int, tuple[float, int]] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_SAMPLE_S):
            for below in descendants(pid):
                if is_python(below):
                    memory, used = seen.get(below, (0.0, 0))
                    seen[below] = max(memory, memory_mb(below, "VmHWM")), max(used, cpu_ns(below))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        done.set()
        watcher.join()


def _figures(seen: list[_Import]) -> tuple[str, ...]:
    workers = [each.worker_mb for each in seen]
    probes = [
        f"{spread([each.during[name] for each in seen])}; idle {max(each.idle[name] for each in seen):.0f}"
        for name in ("p99", "max")
    ]
    return (
        f"{seen[0].tools:,}",
        spread([each.seconds for each in seen], 1),
        spread([each.cpu_s for each in seen], 1),
        spread([each.peak_mb for each in seen]),
        spread(workers) if any(workers) else "–",
        *probes,
    )


def _peer(fastmcp: FastMcp | None, raw: bytes, seconds: float) -> tuple[str, str, str]:
    if fastmcp is None:
        return ("–", "–", "–")
    with scratch() as folder:
        document = folder / "document"
        document.write_bytes(raw)
        try:
            seen = fastmcp.load(document, seconds=seconds)
        except Failed as failed:
            return (str(failed), "–", "–")
    return (f"{seen['seconds']:.1f} ({seen['tools']:,} tools)", f"{seen['cpu_s']:.1f}", f"{seen['peak_mb']:.0f}")
