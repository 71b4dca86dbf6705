"""`python -m tests.whole [pytest arguments]`: run every test; look once more, alone, at those that failed.

A failing test fails the run, whatever the second look finds. The second look is a diagnosis: a test that passes alone
is printed as UNSTEADY, because it depends on what runs beside it. More than three failures get none.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.environment import forget_callers_variables
from tests.support.python_command import offered_command

_ROOT = Path(__file__).parent.parent
_FAILED = _ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
_TESTS_FAILED = 1
"""Exit of pytest when all was collected and run, and some test failed."""
MOST = 3


def main(arguments: Sequence[str]) -> int:
    """The exit code of the first run: 0 when every test passed at once."""
    forget_callers_variables()
    _FAILED.unlink(missing_ok=True)
    with offered_command():  # imports the gateway while pytest starts
        code = _pytest(arguments)
        failed = failures(_FAILED)
        if code == _TESTS_FAILED and 0 < len(failed) <= MOST:
            print("second look, alone:", *failed, sep="\n  ", flush=True)
            if _pytest(["-q", *failed]) == 0:
                print("UNSTEADY: failed beside others, passed alone:", *failed, sep="\n  ", flush=True)
    return code


def failures(cache: Path) -> Sequence[str]:
    """The tests that failed in the last run, as pytest wrote them down."""
    return sorted(json.loads(cache.read_text())) if cache.exists() else []


def _pytest(arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], cwd=_ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
