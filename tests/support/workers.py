"""The template of this test process, from which the workers of gateways are forked (`worker_starts.py`)."""

import atexit
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]


@cache
def worker_template() -> str:
    """The socket of the template, which ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="gww-")
    path = str(Path(folder.name) / "socket")
    command = [sys.executable, "-m", "tests.support.worker_template", path]
    child = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.stdout.close()

    def end() -> None:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
        folder.cleanup()

    atexit.register(end)
    return path
