"""Cost of reading lists and of connecting, for a tenant with one tool and one with a thousand."""

import json
import urllib.request
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.figures import Table, spread
from benchmarks.gateways import RunningGateway, running_gateway, running_upstream, scratch
from benchmarks.measure import Effort, LoadGenerator, Target, alternate, check
from benchmarks.peers import FastMcp
from benchmarks.processes import Failed
from benchmarks.requests import ACCEPT, HANDSHAKE, INITIALIZE, MODERN, document, handshake, modern

_CALLS = 1000
_LIST = "tools/list"
_DISCOVER = "server/discover"
_SIZES = (1, 1000)


def measure_lists(generator: LoadGenerator, effort: Effort, fastmcp: FastMcp | None) -> Table:
    """Measure lists and connecting; return their table."""
    effort = replace(effort, calls=min(effort.calls, _CALLS))
    notes = ["One connection. A walk is all pages of tools/list, one after the other: CPU and p50 times its pages."]
    with ExitStack() as stack:
        port, _ = stack.enter_context(running_upstream())
        gateway = stack.enter_context(running_gateway(stack.enter_context(scratch())))
        ours = [target for tools in _SIZES for target in _ours(gateway, tools, port)]
        peers: list[Target] = []
        try:
            peers += _peers(stack, fastmcp, port, seconds=effort.peer_seconds)
        except Failed as failed:
            notes.append(f"FastMCP: {str(failed)[:200]}")
        alternate(generator, [*ours, *peers], connections=(1,), effort=effort)
    check(ours)
    if fastmcp is None:
        notes.append("FastMCP could not be installed.")
    notes += [f"Not measured: {target.failure[:200]}" for target in peers if target.failure is not None]
    rows = tuple(_row(target) for target in [*ours, *peers] if target.failure is None)
    columns = ("target", "pages", "CPU, ms", "p50 ms", "p99 ms of one request", "requests measured")
    return Table(title="Lists and connecting", columns=columns, rows=rows, notes=tuple(notes))


def _ours(gateway: RunningGateway, tools: int, upstream_port: int) -> Generator[Target]:
    slug = f"tools-{tools}"
    key = gateway.tenant(slug)
    gateway.add_source(slug, json.dumps(document(upstream_port, tools)).encode())
    url = f"/t/{slug}/mcp"
    session = gateway.open_session(slug, key)
    yield from _targets(
        "gateway",
        tools,
        (gateway.port, gateway.pid),
        lambda method, params: modern(url, method, params, key=key),
        session_request=lambda method, params: handshake(
            url, method, params, key=key, session=None if method == "initialize" else session
        ),
    )


def _peers(stack: ExitStack, fastmcp: FastMcp | None, upstream_port: int, *, seconds: float) -> Generator[Target]:
    if fastmcp is None:
        return
    for tools in _SIZES:
        path = stack.enter_context(scratch()) / "document.json"
        path.write_text(json.dumps(document(upstream_port, tools)))
        for target in _targets(
            f"FastMCP {fastmcp.version}",
            tools,
            stack.enter_context(fastmcp.serving(path, upstream_port)),
            lambda method, params: modern("/mcp", method, params),
            session_request=lambda method, params: handshake("/mcp", method, params),
        ):
            target.seconds = seconds
            yield target


Make = Callable[[str, dict[str, object]], bytes]


def _targets(
    name: str, tools: int, place: tuple[int, int], modern_request: Make, *, session_request: Make
) -> Generator[Target]:
    port, pid = place
    shown = f"{tools:,} tools" if tools > 1 else "1 tool"
    yield Target(f"{name}, initialize ({HANDSHAKE}), {shown}", port, pid, [session_request("initialize", INITIALIZE)])
    yield Target(f"{name}, {_DISCOVER} ({MODERN}), {shown}", port, pid, [modern_request(_DISCOVER, {})])
    for era, make in ((MODERN, modern_request), (HANDSHAKE, session_request)):
        seen = walk(port, make)
        if seen.tools != tools:
            raise Failed(f"{_LIST} shows {seen.tools} tools of {tools}")
        yield Target(f"{name}, walk of {_LIST} ({era}), {shown}", port, pid, seen.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A walk: the requests that read every page of `tools/list`, the number of tools, and the bytes of all pages."""

    requests: list[bytes]
    tools: int
    size: int


def walk(port: int, make: Make) -> Walk:
    """Read every page in order; cursors stay valid while the catalog does not change.

    Raises:
        Failed: a page was refused.
    """
    requests = [make(_LIST, {})]
    tools = size = 0
    while True:
        page, length = _page(port, requests[-1])
        tools, size = tools + len(page["tools"]), size + length
        if (cursor := page.get("nextCursor")) is None:
            return Walk(requests=requests, tools=tools, size=size)
        requests.append(make(_LIST, {"cursor": cursor}))


def _page(port: int, raw: bytes) -> tuple[dict[str, Any], int]:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if not line.startswith(("host", "content-length")))
    url = f"http://127.0.0.1:{port}{first.split()[1]}"
    request = urllib.request.Request(url, data=body, headers={"accept": ACCEPT, **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            body = answer.read()
            page: dict[str, Any] = json.loads(body)["result"]
    except (OSError, KeyError, ValueError) as error:
        raise Failed(f"{_LIST} was refused: {error}") from None
    return page, len(body)


def _row(target: Target) -> tuple[str, ...]:
    pages = len(target.requests)
    return (
        target.name,
        str(pages) if _LIST in target.name else "–",
        spread([micro * pages / 1000 for micro in target.each(1, "cpu_us")], 2),
        spread([milli * pages for milli in target.each(1, "p50_ms")], 2),
        spread(target.each(1, "p99_ms"), 2),
        f"{sum(target.each(1, 'calls')):,.0f}",
    )
