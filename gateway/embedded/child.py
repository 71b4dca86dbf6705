"""Child processes of the gateway: start and stop of an embedded server.

On Linux, the kernel sends the first stop signal to a child when the thread that started the child ends. So a child does
not outlive the gateway; it must be started from the main thread.
"""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from gateway.domain.fairness.thread_kinds import OWN_PROGRAMS
from gateway.domain.fairness.threads import run_in_thread
from gateway.embedded.limits import TAIL_BYTES
from gateway.errors import EmbeddedServerFailed

_IS_LINUX = sys.platform == "linux"
_SET_DEATH_SIGNAL = 1
_KEPT_VARIABLES = ("PATH", "HOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The operating system user that a child runs as."""

    uid: int
    gid: int

    @classmethod
    def of(cls, uid: int) -> "Account":
        """Return the account with this user id and its primary group."""
        try:
            return cls(uid=uid, gid=pwd.getpwuid(uid).pw_gid)
        except KeyError:
            raise EmbeddedServerFailed(f"User {uid} is not in the password file, so PostgreSQL cannot run.") from None

    @classmethod
    def named(cls, name: str) -> "Account":
        """Return the account with this user name."""
        try:
            return cls.of(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise EmbeddedServerFailed(f"PostgreSQL refuses to run as root, and there is no user {name}.") from None


@dataclass(slots=True, kw_only=True)
class Child:
    """One child process: its command, its log, and the signals that stop it."""

    name: str
    command: Sequence[str | Path]
    log: Path
    stop_signals: Sequence[signal.Signals]
    account: Account | None = None
    inherited: Sequence[int] = ()
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    def start(self) -> None:
        """Start the program; its output replaces the contents of the log.

        Raises:
            EmbeddedServerFailed: the program cannot be started, or the log cannot be written.
        """
        try:
            with self.log.open("wb") as log:
                self._process = subprocess.Popen(  # noqa: S603  # a fixed command; `_parent_death_signal` takes no lock
                    [str(part) for part in self.command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=_environment(),
                    start_new_session=True,
                    pass_fds=self.inherited,
                    preexec_fn=_parent_death_signal(self.stop_signals[0]),  # noqa: PLW1509  # takes no lock
                    user=self.account.uid if self.account else None,
                    group=self.account.gid if self.account else None,
                    extra_groups=() if self.account else None,
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise EmbeddedServerFailed(f"{self.name} could not be started: {error}") from error

    @property
    def is_running(self) -> bool:
        """True if the program was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def failed(self) -> EmbeddedServerFailed:
        """Return the error of a program that ended unexpectedly; its message contains the end of the log."""
        status = self._process.returncode if self._process else None
        return EmbeddedServerFailed(f"{self.name} ended with status {status}: {self.tail() or 'it printed nothing'}")

    def tail(self) -> str:
        """Return the last 2000 bytes of the log; empty if it cannot be read."""
        try:
            return self.log.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip()
        except OSError:
            return ""

    async def finish(self) -> None:
        """Wait until the program ends by itself.

        Raises:
            EmbeddedServerFailed: the program ended with an error status.
        """
        if self._process is not None and await run_in_thread(OWN_PROGRAMS, "", self._process.wait) != 0:
            raise self.failed()

    async def stop(self, *, timeout_s: float = 10.0) -> None:
        """Send each stop signal in turn, then SIGKILL; after each, wait at most `timeout_s` for the program to end."""
        with anyio.CancelScope(shield=True):
            for number in (*self.stop_signals, signal.SIGKILL):
                if not self.is_running or self._process is None:
                    return
                self._process.send_signal(number)
                await run_in_thread(OWN_PROGRAMS, "", _wait, self._process, timeout_s)


def _wait(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _environment() -> dict[str, str]:
    """Return the environment of a child, without the gateway's secrets and PostgreSQL's variables."""
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def _parent_death_signal(death_signal: signal.Signals) -> Callable[[], None] | None:
    """Return a hook that runs in the child before its program and requests the death signal; None if not on Linux."""
    if not _IS_LINUX:
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def request_signal() -> None:
        prctl(_SET_DEATH_SIGNAL, death_signal.value)
        if os.getppid() != parent:
            os._exit(1)

    return request_signal
