"""Packages of PyPI that tests run and do not import: pinned by lock files here, in environments kept with the venv."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_LOCKS = Path(__file__).with_name("packages")
_KEPT = Path(sys.prefix) / "environments"
_PATIENCE_S = 300


def find_python(name: str) -> Path:
    """The interpreter of the environment `packages/NAME`; a test that asks is skipped where pip cannot fetch it.

    `python` is the first generation of the SDK for Python, `converters` are the libraries that turn tools into those of
    model APIs.
    """
    lock = _LOCKS / name / "requirements.txt"
    folder = _KEPT / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    _KEPT.mkdir(exist_ok=True)
    with (_KEPT / f"{name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _install(lock, folder)
    return folder / "bin/python"


def _install(lock: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=_PATIENCE_S)
    command = [str(folder / "bin/python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    command += ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock)]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"NOT RUN: pip did not fetch the packages of {lock.parent.name} in time")
    if ended.returncode:
        pytest.skip(f"NOT RUN: pip cannot fetch {lock.parent.name}: {ended.stderr.decode(errors='replace')[-300:]}")
    (folder / "done").touch()
