"""Runs every test; at most three that failed get one second look, alone, and are named whatever comes of it.

Thousands of tests start hundreds of processes on machines that others use too. A test that fails beside others and
passes alone is a fault to be found, of the test or of the product, and is printed as such; it is not a reason to
believe the other thousands less. Four failures, or one that fails again, end the run as failed.

Run as `python -m tests.whole`; what follows goes on to pytest.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_FAILED = _ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
_TESTS_FAILED = 1
"""How pytest ends when all was collected and run, and something failed."""
MOST = 3


def main(arguments: Sequence[str]) -> int:
    """The exit code: 0 when every test passed, be it at the second look."""
    _FAILED.unlink(missing_ok=True)
    first = _pytest(arguments)
    failed = failures(_FAILED)
    if first != _TESTS_FAILED or not 0 < len(failed) <= MOST:
        return first
    print("second look, alone:", *failed, sep="\n  ", flush=True)
    second = _pytest(["-q", *failed])
    if second == 0:
        print("UNSTEADY: failed beside others, passed alone:", *failed, sep="\n  ", flush=True)
    return second


def failures(cache: Path) -> Sequence[str]:
    """The tests that failed in the last run, as pytest wrote them down."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=_ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
