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


def find_program(package: str, name: str, *, with_libraries: bool = False) -> Path:
    """The program `name` of a Debian package, `with_libraries` beside the packages that it depends on.

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
            _fetch(package, with_libraries=with_libraries)
    return next(place for place in places if place.exists())


def _fetch(package: str, *, with_libraries: bool) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise ProgramMissing(f"NOT RUN: {package} is not installed and there is no apt to fetch it with")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if not _download(package, folder, with_libraries=with_libraries):
            raise ProgramMissing(f"NOT RUN: apt cannot fetch {package}")
        unpacked = folder / "unpacked"
        for archive in folder.rglob("*.deb"):
            subprocess.run(["dpkg", "-x", str(archive), str(unpacked)], check=True)
        shutil.rmtree(_KEPT / package, ignore_errors=True)
        shutil.copytree(unpacked, _KEPT / package, symlinks=True)


def _download(package: str, folder: Path, *, with_libraries: bool) -> bool:
    """With the lists of this machine, or with fresh ones of our own where it has none."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    own = ["-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"]
    wanted = ["download", package]
    if with_libraries:
        wanted = ["install", "--yes", "--download-only", "--no-install-recommends", package]
    if _apt(folder, *own, *wanted):
        return True
    own += ["-o", f"Dir::State={folder}/state", "-o", "Dir::State::status=/var/lib/dpkg/status"]
    return _apt(folder, *own, "update") and _apt(folder, *own, *wanted)


def _apt(folder: Path, *arguments: str) -> bool:
    try:
        ended = subprocess.run(
            ["apt-get", "-qq", *arguments], cwd=folder, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0
