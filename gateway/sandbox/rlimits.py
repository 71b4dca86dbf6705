"""Limits that a sandboxed child sets for itself: inherited files, memory, CPU time, core dumps."""

import contextlib
import gc
import os
import resource
import signal
from pathlib import Path

_FIRST_INHERITED_FD = 3


def isolate() -> None:
    """Close inherited files, and disable the garbage collector, because parsed JSON has no cycles."""
    gc.disable()
    os.closerange(_FIRST_INHERITED_FD, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def limit(*, memory_bytes: int, cpu_s: int | None = None) -> None:
    """Limit the address space and the CPU time of this process, where the system supports it; disable core dumps."""
    wanted = {resource.RLIMIT_AS: memory_bytes, resource.RLIMIT_CPU: cpu_s, resource.RLIMIT_CORE: 0}
    for kind, value in wanted.items():
        if value is None:
            continue
        _, hard_limit = resource.getrlimit(kind)
        allowed = value if hard_limit == resource.RLIM_INFINITY else min(value, hard_limit)
        with contextlib.suppress(ValueError, OSError):  # not every system supports every limit
            resource.setrlimit(kind, (allowed, allowed))


def limit_request(cpu_s: float) -> None:
    """Kill this process when it has used that much CPU time from now on; the next call begins to count again."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)  # the default action of SIGPROF ends a process


def peak_bytes() -> int:
    """The peak memory of this process in bytes; the fallback `getrusage` may include the parent process."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
