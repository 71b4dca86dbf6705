"""Start of a gateway: time to readiness, idle memory, and the number of packages to install."""

import re
import time
from pathlib import Path

from packaging.requirements import Requirement

from benchmarks.figures import Table, spread
from benchmarks.gateways import running_gateway, running_servers, scratch
from benchmarks.processes import memory_mb
from gateway.embedded.servers import EmbeddedUrls

_LOCK = Path(__file__).parents[1] / "requirements.txt"
_PIN = re.compile(r"^([A-Za-z0-9][^\s;\\]*==[^\s;\\]+)\s*(;[^\\]*)?", re.MULTILINE)
_SETTLE_S = 1.0
"""Time for memory used by the start to be released; no event announces that."""

_Start = tuple[float, float]


def measure_starts(rounds: int) -> Table:
    """Measure starts and return their table."""
    first: list[_Start] = []
    again: list[_Start] = []
    configured: list[_Start] = []
    with running_servers() as servers:
        for _ in range(rounds):
            with scratch() as folder:
                first.append(_start(folder))
                again.append(_start(folder))
                configured.append(_start(folder, servers))
    named = {
        "embedded servers, first start": first,
        "embedded servers, data present": again,
        "configured servers": configured,
    }
    rows = tuple(
        (name, spread([seconds for seconds, _ in seen], 1), spread([memory for _, memory in seen]))
        for name, seen in named.items()
    )
    notes = (
        (
            "From the start of the process until /readyz answers 200. Memory is that of the gateway's own process, one "
            "second later, without PostgreSQL and Redis."
        ),
        f"Packages that requirements.txt installs on this machine: {len(installed(_LOCK.read_text()))}.",
    )
    return Table(title="Start", columns=("start", "seconds to ready", "idle RSS, MB"), rows=rows, notes=notes)


def installed(lock: str) -> list[str]:
    """Return the packages of a compiled requirements file whose markers apply here."""
    pins = [Requirement(f"{pin}{marker or ''}".strip()) for pin, marker in _PIN.findall(lock)]
    return [pin.name for pin in pins if pin.marker is None or pin.marker.evaluate()]


def _start(data_dir: Path, servers: EmbeddedUrls | None = None) -> _Start:
    """Start a gateway; return the seconds to readiness, and the resident MB when idle."""
    started = time.monotonic()
    with running_gateway(data_dir, servers=servers) as gateway:
        seconds = time.monotonic() - started
        time.sleep(_SETTLE_S)
        return seconds, memory_mb(gateway.pid, "VmRSS")
