"""A replica uses what the machine allows of open files, and no more than it can use."""

import subprocess
import sys

import pytest

CHILD = """
import resource, sys
from gateway.app import serve
soft, hard = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
serve._allow_open_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"), [(256, 512, "512 512"), (512, 512, "512 512")], ids=["low", "as high as it may be"]
)
def test_the_limit_is_raised_to_what_is_allowed(soft: int, hard: int, expected: str) -> None:
    """Ours: a replica takes its connections also where the usual limit is low (SRV-1)."""
    command = [sys.executable, "-c", CHILD, str(soft), str(hard)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == expected
