"""Child processes of a measurement: started, waited for, accounted, ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_START_S = 60


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    arguments: list[str], url: str, environment: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes]]:
    """A child that answers at the URL for as long as the block runs."""
    child = subprocess.Popen(
        [sys.executable, *arguments], env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL
    )
    try:
        wait_for(url, child)
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(30)


def wait_for(url: str, child: subprocess.Popen[bytes]) -> float:
    """Seconds until the URL answered."""
    started = time.monotonic()
    while time.monotonic() - started < _START_S:
        if child.poll() is not None:
            raise SystemExit(f"{child.args!r} ended with {child.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return time.monotonic() - started
        except urllib.error.HTTPError:
            return time.monotonic() - started
        except OSError:
            time.sleep(0.01)
    raise SystemExit(f"{url} did not answer")


def cpu_ns(pid: int) -> int:
    """Nanoseconds of CPU that all threads of a process have used (Linux scheduler accounting)."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load(port: int, request: bytes, *, connections: int, calls: int) -> dict[str, Any]:
    """What the load generator saw."""
    order = {"port": port, "request": request.decode("latin-1"), "connections": connections, "calls": calls}
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"], input=json.dumps(order).encode(), capture_output=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen
