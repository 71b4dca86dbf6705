"""`python -m benchmarks.fair_share`: effect of a tenant at ten times its limits on another tenant of the same replica.

The noisy tenant has its limits raised as far as its own admin key can. It sends calls, or lists of its tools, from its
own process over a bounded number of connections. The other tenant calls at an even rate all the time. The noise is on
in every second interval, so both medians are from the same minute on the same machine.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence

import uvloop

from benchmarks.figures import percentile
from benchmarks.gateways import RunningGateway, running_gateway, running_servers, running_upstream, scratch
from benchmarks.load import LENGTH
from benchmarks.requests import CALL, document, modern
from gateway.domain.tenancy.ceilings import LIMIT_NAMES

NOISY, OTHER = "noisy", "other"
_TIMES = 10
_PER_S = 50.0


def main() -> None:
    """Run the measurement and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fair_share", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spell", type=float, default=4.0, help="seconds of calm, and of noise, in each round")
    parser.add_argument("--connections", type=int, default=256, help="of the noisy tenant")
    parser.add_argument("--method", choices=("tools/call", "tools/list"), default="tools/call")
    parser.add_argument("--noise", nargs=3, metavar=("PORT", "KEY", "PER_S"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.noise:
        uvloop.run(_make_noise(options.noise, options.connections, options.method))
        return
    with (
        running_upstream() as (upstream_port, _),
        running_servers() as servers,
        scratch() as folder,
        running_gateway(folder, upstream_port=upstream_port, servers=servers) as gateway,
    ):
        content = json.dumps(document(upstream_port, 20)).encode()
        keys = {slug: _furnish(gateway, slug, content) for slug in (NOISY, OTHER)}
        per_s = _raise_limits(gateway) * _TIMES
        print(f"{options.method}: {per_s:,.0f} offered per second over {options.connections} connections")
        _alternate(gateway, keys, options, per_s)


def _furnish(gateway: RunningGateway, slug: str, content: bytes) -> str:
    """Create a tenant with the default limits and a source; return its key."""
    gateway.send("POST", "/tenants", json.dumps({"slug": slug}).encode())
    key: str = gateway.send("POST", f"/tenants/{slug}/keys", b'{"name":"bench","scopes":["mcp"]}')["key"]
    gateway.add_source(slug, content)
    return key


def _raise_limits(gateway: RunningGateway) -> float:
    """Raise each limit of the noisy tenant to its ceiling with its own admin key; return its calls per second."""
    made = gateway.send("POST", f"/tenants/{NOISY}/keys", b'{"name":"admin","scopes":["admin"]}')
    ceilings = gateway.send("GET", f"/tenants/{NOISY}/ceilings")["status"]["effective"]
    body = json.dumps({"limits": {name: ceilings[name] for name in LIMIT_NAMES}}).encode()
    headers = {"authorization": f"Bearer {made['key']}", "content-type": "application/json"}
    url = f"{gateway.url}/admin/v1/tenants/{NOISY}/policy"
    request = urllib.request.Request(url, data=body, headers=headers, method="PUT")
    with urllib.request.urlopen(request, timeout=30):
        return float(ceilings["calls_per_second"])


def _alternate(gateway: RunningGateway, keys: dict[str, str], options: argparse.Namespace, per_s: float) -> None:
    calm: list[float] = []
    loud: list[float] = []
    order = ["-m", "benchmarks.fair_share", "--connections", str(options.connections), "--method", options.method]
    for number in range(1, options.rounds + 1):
        quiet = uvloop.run(_call_evenly(gateway.port, keys[OTHER], options.spell))
        noise = subprocess.Popen(
            [sys.executable, *order, "--noise", str(gateway.port), keys[NOISY], str(per_s)],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert noise.stdout is not None
        noise.stdout.readline()  # each of its connections has received a response
        noisy = uvloop.run(_call_evenly(gateway.port, keys[OTHER], options.spell))
        output = noise.communicate(timeout=60)[0].strip()  # ends the noise
        print(f"round {number}: {_figures(quiet, noisy)}; noise: {output}", flush=True)
        calm += quiet
        loud += noisy
    print(f"all: {_figures(calm, loud)} (wanted: median below 2 times)")


def _figures(calm: Sequence[float], loud: Sequence[float]) -> str:
    shown: list[str] = []
    for share in (50, 99):
        quiet, noisy = percentile(calm, share) * 1000, percentile(loud, share) * 1000
        shown.append(f"p{share} {quiet:.2f} ms calm, {noisy:.2f} ms loud, {noisy / quiet:.2f} times")
    return "; ".join(shown)


class _Line:
    """One keep-alive connection with one request at a time."""

    def __init__(self, port: int, raw: bytes) -> None:
        self._port = port
        self._raw = raw
        self._ends: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self) -> tuple[float, bool]:
        """Send the request; return the seconds until the response, and True if it was a result."""
        if self._ends is None:
            self._ends = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._ends
        began = time.perf_counter()
        writer.write(self._raw)
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        return time.perf_counter() - began, head[9:12] == b"200" and b'"result"' in body

    def close(self) -> None:
        """Close the connection."""
        if self._ends is not None:
            self._ends[1].close()


async def _call_evenly(port: int, key: str, seconds: float) -> list[float]:
    """Make calls at an even rate, one after the other, and return their latencies.

    Raises:
        RuntimeError: a call failed.
    """
    line = _Line(port, modern(f"/t/{OTHER}/mcp", "tools/call", CALL, key=key))
    found: list[float] = []
    began = time.perf_counter()
    while (due := began + len(found) / _PER_S) < began + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))  # keeps the rate of the caller
        took, is_ok = await line.ask()
        if not is_ok:
            raise RuntimeError("a call of the other tenant failed")
        found.append(took)
    line.close()
    return found


async def _make_noise(noise: Sequence[str], connections: int, method: str) -> None:
    """Send requests at a rate until stdin ends; print when all connections are busy, and the numbers of results and
    refusals.
    """
    port, key, per_s = int(noise[0]), noise[1], float(noise[2])
    raw = modern(f"/t/{NOISY}/mcp", method, CALL if method == "tools/call" else {}, key=key)
    counts = {True: 0, False: 0}
    over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    pause, began = connections / per_s, time.perf_counter()

    async def hammer(line: _Line, due: float) -> None:
        while not over.done():
            await asyncio.sleep(max(0.0, due - time.perf_counter()))  # keeps the offered rate
            due = time.perf_counter() + pause
            _, is_ok = await line.ask()
            counts[is_ok] += 1
        line.close()

    lines = [_Line(port, raw) for _ in range(connections)]
    await asyncio.gather(*(line.ask() for line in lines))
    print("ready", flush=True)
    await asyncio.gather(*(hammer(line, began + pause * place / connections) for place, line in enumerate(lines)))
    seconds = time.perf_counter() - began
    print(f"{counts[True] / seconds:,.0f} results/s, {counts[False] / seconds:,.0f} refusals/s")


if __name__ == "__main__":
    main()
