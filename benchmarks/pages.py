"""Cost of listing the tools of real documents: CPU per page, pages and bytes, beside the single page of FastMCP."""

import gzip
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.figures import Table, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_upstream, scratch
from benchmarks.imports import DOCUMENTS, SPECS, URL
from benchmarks.lists import Walk, walk
from benchmarks.measure import Effort, LoadGenerator, Target, alternate, check
from benchmarks.peers import FastMcp
from benchmarks.processes import Failed, cpu_ns
from benchmarks.requests import modern

_CALLS = 1000
_PEER_WALKS = 3
_COLUMNS = (
    "document",
    "tools",
    "pages",
    "kB of all answers",
    "CPU of a page, µs",
    "CPU of all pages, ms",
    "p50 of a page, ms",
    "FastMCP tools",
    "FastMCP kB",
    "FastMCP CPU of its page, ms",
    "FastMCP ms",
)
_NOTES = (
    "tools/list of 2026-07-28, all pages in turn over one connection, from bytes that are ready.",
    "FastMCP serves the document on uvicorn and has one page, which is asked for three times after a first time.",
    "The bar (DESIGN section 6) for all pages of 1,000 tools: at most 15 ms of CPU, later 1 ms.",
)


def measure_pages(generator: LoadGenerator, effort: Effort, documents: Sequence[str], fastmcp: FastMcp | None) -> Table:
    """Measure lists of real documents and return their table.

    A missing document is listed in the notes; one that FastMCP cannot load has the reason in its row.
    """
    effort = replace(effort, calls=min(effort.calls, _CALLS))
    notes = [*_NOTES]
    found: dict[str, tuple[Target, Walk]] = {}
    peers: dict[str, tuple[str, ...]] = {}
    for name in documents:
        path = SPECS / f"{DOCUMENTS[name]}.gz"
        if not path.is_file():
            notes.append(f"{name}: the document is not on this machine.")
            continue
        peers[name] = _peer(fastmcp, gzip.decompress(path.read_bytes()))
    with ExitStack() as stack:
        gateway = stack.enter_context(running_gateway(stack.enter_context(scratch())))
        for name in peers:
            found[name] = _ours(gateway, name)
        targets = [target for target, _ in found.values()]
        alternate(generator, targets, connections=(1,), effort=effort)
        check(targets)
    if fastmcp is None:
        notes.append("FastMCP could not be installed.")
    rows = tuple((name, *_figures(*found[name]), *peers[name]) for name in found)
    return Table(title="Lists of real documents", columns=_COLUMNS, rows=rows, notes=tuple(notes))


def _ours(gateway: RunningGateway, name: str) -> tuple[Target, Walk]:
    slug = name.lower()
    key = gateway.tenant(slug)
    gateway.add_source(slug, gzip.decompress((SPECS / f"{DOCUMENTS[name]}.gz").read_bytes()), url=URL)
    seen = walk(gateway.port, lambda method, params: modern(f"/t/{slug}/mcp", method, params, key=key))
    return Target(f"tools/list of {name}", gateway.port, gateway.pid, seen.requests), seen


def _figures(target: Target, seen: Walk) -> tuple[str, ...]:
    pages = len(seen.requests)
    cpu = target.each(1, "cpu_us")
    return (
        f"{seen.tools:,}",
        str(pages),
        f"{seen.size / 1000:,.0f}",
        spread(cpu),
        spread([micro * pages / 1000 for micro in cpu], 2),
        spread(target.each(1, "p50_ms"), 2),
    )


def _peer(fastmcp: FastMcp | None, raw: bytes) -> tuple[str, ...]:
    """Return FastMCP's figures: tools, kB, CPU and time of its list."""
    if fastmcp is None:
        return ("–",) * 4
    with scratch() as folder, running_upstream() as (upstream_port, _):
        document = folder / "document"
        document.write_bytes(raw)
        try:
            with fastmcp.serving(document, upstream_port) as (port, pid):
                return _peer_figures(port, pid)
        except Failed as failed:
            return (_reason(str(failed)), "–", "–", "–")


def _peer_figures(port: int, pid: int) -> tuple[str, ...]:
    cpu: list[float] = []
    taken: list[float] = []
    seen = walk(port, _make)
    for _ in range(_PEER_WALKS):
        used, started = cpu_ns(pid), time.perf_counter()
        walk(port, _make)
        taken.append((time.perf_counter() - started) * 1000)
        cpu.append((cpu_ns(pid) - used) / 1e6)
    return (f"{seen.tools:,}", f"{seen.size / 1000:,.0f}", spread(cpu), spread(taken))


def _make(method: str, params: dict[str, object]) -> bytes:
    return modern("/mcp", method, params)


def _reason(text: str) -> str:
    """Return only the error type from the last printed line, which can contain a file path of this machine."""
    printed = text.partition("did not come up:")[2].strip().splitlines()
    return f"fails: {printed[-1].split(':')[0][:60]}" if printed else "does not come up in time"
