"""Number of cores that this process may use."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

_QUOTA: Final = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota_file: Path = _QUOTA) -> int:
    """Return the number of cores by the affinity of the process, or that of its control group's quota if it is less."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # no control group, or no quota
        quota, period = quota_file.read_text(encoding="ascii").split()
        cores = min(cores, max(1, int(quota) // int(period)))
    return cores
