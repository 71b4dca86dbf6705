"""Programs of Debian that tests run without an installation: fetched by name with apt, unpacked, kept with the venv."""

import fcntl
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path

_KEPT = Path(sys.prefix) / "debian"
_PATIENCE_S = 180
_STATUS = Path("/var/lib/dpkg/status")
_KEPT_OUT = ("libc6", "libgcc-s1")
"""Libraries that belong to the dynamic loader of the machine, which unpacked programs use too."""

_DRIVERS = ("libgl1-mesa-dri_", "libllvm", "libz3-4_")
"""Graphics drivers, which no program of a test loads: 500 MB."""


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


def library_path(program: Path) -> dict[str, str]:
    """The variable with which a program of `find_program` finds the libraries beside it; none if it is installed."""
    if not program.is_relative_to(_KEPT):
        return {}
    unpacked = _KEPT / program.relative_to(_KEPT).parts[0]
    folders = {path.parent for top in ("usr/lib", "lib") for path in (unpacked / top).glob("*-linux-gnu/**/*.so*")}
    return {"LD_LIBRARY_PATH": ":".join(sorted(str(folder) for folder in folders))}


def _fetch(package: str, *, with_libraries: bool) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise ProgramMissing(f"NOT RUN: {package} is not installed and there is no apt to fetch it with")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if not _download(package, folder, with_libraries=with_libraries):
            raise ProgramMissing(f"NOT RUN: apt cannot fetch {package}")
        unpacked = folder / "unpacked"
        for archive in folder.rglob("*.deb"):
            if archive.name.startswith(_DRIVERS):
                continue
            subprocess.run(["dpkg", "-x", str(archive), str(unpacked)], check=True)
        shutil.rmtree(_KEPT / package, ignore_errors=True)
        shutil.copytree(unpacked, _KEPT / package, symlinks=True)


def _download(package: str, folder: Path, *, with_libraries: bool) -> bool:
    """With the lists of this machine, or with fresh ones of our own where it has none.

    What is installed is downloaded too: apt leaves it out otherwise, and an unpacked program does not find all of it.
    """
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    status = folder / "status"
    status.write_text(without_others(_STATUS.read_text(), _KEPT_OUT))
    own = ["-o", f"Dir::Cache={folder}/cache", "-o", "APT::Sandbox::User=root", "-o", "Debug::NoLocking=1"]
    own += ["-o", f"Dir::State::status={status}"]
    wanted = ["download", package]
    if with_libraries:
        wanted = ["install", "--yes", "--download-only", "--no-install-recommends", package]
    if _apt(folder, *own, *wanted):
        return True
    own += ["-o", f"Dir::State={folder}/state"]
    return _apt(folder, *own, "update") and _apt(folder, *own, *wanted)


def without_others(status: str, names: Sequence[str]) -> str:
    """A dpkg status file that has these packages alone, which depend on nothing."""
    wanted = {f"Package: {name}" for name in names}
    paragraphs = (paragraph.splitlines() for paragraph in status.split("\n\n"))
    kept = (
        [line for line in lines if not line.startswith(("Depends:", "Pre-Depends:"))]
        for lines in paragraphs
        if not wanted.isdisjoint(lines)
    )
    return "".join("\n".join(lines) + "\n\n" for lines in kept)


def _apt(folder: Path, *arguments: str) -> bool:
    try:
        ended = subprocess.run(
            ["apt-get", "-qq", *arguments], cwd=folder, capture_output=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0
