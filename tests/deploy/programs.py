"""Programs of Debian that tests run and nobody installs: fetched by name with apt, unpacked, kept with the venv."""

import fcntl
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

_KEPT = Path(sys.prefix) / "debian"
_PATIENCE_S = 180


class ProgramMissing(unittest.SkipTest):
    """A program is not here and cannot be fetched; a test that raises it is skipped."""


def find_program(package: str, name: str) -> Path:
    """The program `name` of a Debian package.

    Raises:
        ProgramMissing: apt cannot fetch it.
    """
    installed = shutil.which(name)
    if installed is not None:
        return Path(installed)
    _KEPT.mkdir(exist_ok=True)
    places = [_KEPT / package / "usr" / folder / name for folder in ("bin", "sbin")]
    with (_KEPT / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(place.exists() for place in places):
            _fetch(package)
    return next(place for place in places if place.exists())


def _fetch(package: str) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise ProgramMissing(f"NOT RUN: {package} is not installed and there is no apt to fetch it with")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if not _download(package, folder):
            raise ProgramMissing(f"NOT RUN: apt cannot fetch {package}")
        unpacked = folder / "unpacked"
        subprocess.run(["dpkg", "-x", *map(str, folder.glob("*.deb")), str(unpacked)], check=True)
        shutil.rmtree(_KEPT / package, ignore_errors=True)
        shutil.copytree(unpacked, _KEPT / package, symlinks=True)


def _download(package: str, folder: Path) -> bool:
    """With the lists of this machine, or with fresh ones of our own where it has none."""
    if _apt(folder, "download", package):
        return True
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    own = ["-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache"]
    own += ["-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]
    return _apt(folder, *own, "update") and _apt(folder, *own, "download", package)


def _apt(folder: Path, *arguments: str) -> bool:
    try:
        ended = subprocess.run(
            ["apt-get", "-qq", *arguments], cwd=folder, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0
