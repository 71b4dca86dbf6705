"""A replica uses what the machine allows of open files, and no more than it can use."""

import subprocess
import sys

CHILD = """
import resource, sys
from gateway.app.server import serve
for soft, hard in ((512, 512), (256, 512)):
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    serve._allow_open_files()
    print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_limit_is_raised_to_what_is_allowed() -> None:
    """Ours: a replica takes its connections also where the usual limit is low; no more than it may (SRV-1)."""
    ran = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.split() == ["512"] * 4
