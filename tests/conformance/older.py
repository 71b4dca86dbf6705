"""The first generation of the SDK for Python, pinned by a lock file here, in an environment kept with the venv."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_LOCK = Path(__file__).with_name("packages") / "python/requirements.txt"
_KEPT = Path(sys.prefix) / "older"
_PATIENCE_S = 300


def find_older_python() -> Path:
    """Its interpreter; where pip cannot fetch what it needs, the test that asks is skipped."""
    folder = _KEPT / hashlib.sha256(_LOCK.read_bytes()).hexdigest()[:12]
    _KEPT.mkdir(exist_ok=True)
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _install(folder)
    return folder / "bin/python"


def _install(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_PATIENCE_S)
    command = [str(folder / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(_LOCK)]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip("NOT RUN: pip did not fetch the older SDK in time")
    if ended.returncode:
        pytest.skip(f"NOT RUN: pip cannot fetch the older SDK: {ended.stderr.decode(errors='replace')[-300:]}")
    (folder / "done").touch()
