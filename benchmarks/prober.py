"""Latency of a gateway's `/healthz` while other work goes on: `python -m benchmarks.prober PORT`.

Sends one request at a time over one connection, 2 ms after the last response, until stdin closes. Then prints one line
with the number of responses and their p50, p99 and longest time in ms. Blocking of the gateway's event loop shows as
latency, and so does a machine that is too busy to run the gateway or this process.
"""

import http.client
import json
import select
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.figures import percentile
from benchmarks.processes import Failed

_PAUSE_S = 0.002
_Result = TypeVar("_Result")


def probing(port: int, act: Callable[[], _Result]) -> tuple[_Result, dict[str, Any]]:
    """Run `act` while a prober runs; return its result and the prober's figures.

    Raises:
        Failed: the prober did not start or received no response.
    """
    command = [sys.executable, "-m", "benchmarks.prober", str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        if child.stdin is None or child.stdout is None or not child.stdout.readline():
            raise Failed("the prober did not start")
        try:
            result = act()
        finally:
            child.stdin.close()
            line = child.stdout.readline()
    if not line:
        raise Failed("the prober saw no answer")
    seen: dict[str, Any] = json.loads(line)
    return result, seen


def main() -> None:
    """Probe until stdin closes."""
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=120)
    seen = [_probe(connection)]
    print("ready", flush=True)
    seen.clear()
    while not select.select([sys.stdin], [], [], _PAUSE_S)[0]:
        seen.append(_probe(connection))
    seen.append(_probe(connection))
    figures = {"answers": len(seen), "p50": percentile(seen, 50), "p99": percentile(seen, 99), "max": max(seen)}
    print(json.dumps(figures), flush=True)


def _probe(connection: http.client.HTTPConnection) -> float:
    started = time.perf_counter()
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()
