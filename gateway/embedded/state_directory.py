"""State directory of the embedded servers, locked so that only one gateway uses it.

    DATA_DIR/servers/            0700, owned by the gateway's account
        lock                     held while the gateway runs; contains its process id
        postgres/  redis/        the data directories
        sockets/                 the sockets; a temporary folder if this path is too long
        *.log

If the gateway runs as root, `postgres` and `sockets` belong to the account of PostgreSQL. On Linux, that account cannot
open `servers`, so its other programs cannot reach the data; PostgreSQL uses inherited descriptors. Elsewhere, `servers`
has mode 0711 in that case.
"""

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from gateway.embedded.child import Account
from gateway.embedded.limits import MAX_SOCKET_LENGTH
from gateway.errors import EmbeddedServerFailed

_SOCKET_NAME = "/.s.PGSQL.5432"
_UNPRIVILEGED = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDirectory:
    """The claimed folders; `account` runs PostgreSQL, None means the gateway's own account."""

    root: Path
    sockets: Path
    account: Account | None

    @property
    def postgres(self) -> Path:
        """Data directory of PostgreSQL."""
        return self.root / "postgres"

    @property
    def redis(self) -> Path:
        """Data directory of Redis."""
        return self.root / "redis"

    def log(self, name: str) -> Path:
        """Return the path of the log of a program."""
        return self.root / f"{name}.log"


@contextmanager
def claim(data_dir: Path) -> Generator[StateDirectory]:
    """Create and lock the folder while the block runs.

    Raises:
        EmbeddedServerFailed: another gateway has locked the folder, it cannot be written, or the account of PostgreSQL
            does not exist.
    """
    root = data_dir.absolute() / "servers"
    with ExitStack() as stack:
        try:
            root.mkdir(parents=True, exist_ok=True)
            root.chmod(0o700)
            stack.enter_context(_locked(root / "lock", data_dir))
            account = _account(root / "postgres")
            (root / "redis").mkdir(mode=0o700, exist_ok=True)
            sockets = stack.enter_context(_socket_folder(root / "sockets", account))
        except OSError as error:
            raise EmbeddedServerFailed(
                f"The data directory {data_dir} cannot be used: {error.strerror or error} ({error.filename})"
            ) from error
        if account is not None and sys.platform != "linux":
            root.chmod(0o711)
        yield StateDirectory(root=root, sockets=sockets, account=account)


def make_folder(path: Path, account: Account | None) -> None:
    """Create a folder with mode 0700 that belongs to the account; None means the gateway's own account."""
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
    if account is not None:
        os.chown(path, account.uid, account.gid)


@contextmanager
def _locked(path: Path, data_dir: Path) -> Generator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            raise EmbeddedServerFailed(
                f"The data directory {data_dir} is in use by another gateway (process {holder}): stop that one, "
                "set GATEWAY_DATA_DIR to another folder, or configure GATEWAY_DATABASE_URL and GATEWAY_REDIS_URL."
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def _account(data: Path) -> Account | None:
    """Return None unless the gateway is root, which PostgreSQL refuses; then the owner of the data, else `nobody`."""
    if os.geteuid() != 0:
        return None
    owner = data.stat().st_uid if data.exists() else 0
    return Account.of(owner) if owner else Account.named(_UNPRIVILEGED)


@contextmanager
def _socket_folder(wanted: Path, account: Account | None) -> Generator[Path]:
    """Yield the wanted folder, or a short temporary one if the paths of its sockets would be too long."""
    if _fits(wanted):
        make_folder(wanted, account)
        yield wanted
        return
    short = Path(tempfile.mkdtemp(prefix="gw-"))
    if not _fits(short / "s"):
        short.rmdir()
        short = Path(tempfile.mkdtemp(prefix="gw-", dir="/tmp"))  # mkdtemp makes it private
    try:
        make_folder(short / "s", account)
        yield short / "s"
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(short)


def _fits(folder: Path) -> bool:
    return len(os.fsencode(folder)) + len(_SOCKET_NAME) <= MAX_SOCKET_LENGTH
