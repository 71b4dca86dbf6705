"""Child processes of a measurement: start, readiness, CPU and memory accounting, end."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_START_S = 60
_END_S = 30
_TAIL = 2000


class Failed(Exception):
    """A measurement cannot be made; the message has the reason."""


def free_port() -> int:
    """Return a port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running(
    arguments: list[str],
    url: str,
    environment: dict[str, str] | None = None,
    *,
    python: str = sys.executable,
) -> Generator[subprocess.Popen[bytes]]:
    """Run a Python child that answers at the URL while the block runs.

    Raises:
        Failed: the child ended or did not answer; the message contains the end of its output.
    """
    with tempfile.TemporaryFile() as printed:
        child = subprocess.Popen(
            [python, *arguments], env={**os.environ, **(environment or {})}, stdout=printed, stderr=subprocess.STDOUT
        )
        try:
            if not _answers(url, child):
                printed.seek(0)
                tail = printed.read()[-_TAIL:].decode(errors="replace")
                raise Failed(f"{' '.join(arguments[:3])} did not come up: {tail}")
            yield child
        finally:
            end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Terminate the child, and kill it if it does not end within 30 s."""
    child.terminate()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def cpu_ns(pid: int) -> int:
    """Return the nanoseconds of CPU that all threads of a process have used (Linux scheduler accounting)."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has just ended
    return total


def children(pid: int) -> list[int]:
    """Return the processes that the main thread of a process has started."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid: int) -> list[int]:
    """Return the descendants of a process."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found: list[int] = []
    wanted = [pid]
    while wanted:
        children = parents.get(wanted.pop(), [])
        found += children
        wanted += children
    return found


def memory_mb(pid: int, kind: str) -> float:
    """Return one line of `/proc/PID/status` in MB: `VmRSS` is resident now, `VmHWM` the peak; 0 if the process has
    ended.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{kind}:")), 0.0)


def unique_memory_mb(pid: int) -> float:
    """Return the memory in MB that ends with the process (USS); 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = [line for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
    return sum(int(line.split()[1]) for line in own) * 1024 / 1e6


def is_python(pid: int) -> bool:
    """True if a process runs Python: a worker of the gateway, not an embedded server."""
    try:
        return "python" in Path(f"/proc/{pid}/exe").readlink().name
    except OSError:
        return False


def _answers(url: str, child: subprocess.Popen[bytes]) -> bool:
    """Wait for any response except 503."""
    started = time.monotonic()
    while child.poll() is None and time.monotonic() - started < _START_S:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return True
        except urllib.error.HTTPError as error:
            if error.code != 503:
                return True
        except OSError:
            pass
        time.sleep(0.01)
    return False
