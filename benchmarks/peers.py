"""FastMCP in its own environment: installed from its wheel, started over HTTP, or timed while it loads."""

import json
import subprocess
import sys
import venv
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.processes import Failed, free_port, running

_WANTED = "4.1.*"
_INSTALL_S = 400
_SCRIPT = str(Path(__file__).parent / "fastmcp_server.py")
_ALONE = "-P"
"""Keeps the script's folder off the path: a module there has the name of one that FastMCP's libraries import."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FastMcp:
    """An installed FastMCP."""

    python: Path
    version: str

    @contextmanager
    def serving(self, document: Path, upstream_port: int) -> Generator[tuple[int, int]]:
        """Serve the document at `/mcp`; yield port and process id.

        Raises:
            Failed: the server did not start.
        """
        port = free_port()
        arguments = [_ALONE, _SCRIPT, "serve", str(document), f"http://127.0.0.1:{upstream_port}", str(port)]
        with running(arguments, f"http://127.0.0.1:{port}/mcp", python=str(self.python)) as child:
            yield port, child.pid

    def load(self, document: Path, *, seconds: float) -> dict[str, Any]:
        """Load a document in a new process; return `{"seconds", "cpu_s", "peak_mb", "tools"}`.

        `peak_mb` is the peak above the memory before loading.

        Raises:
            Failed: loading failed, or took longer than `seconds`.
        """
        command = [str(self.python), _ALONE, _SCRIPT, "load", str(document)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"not within {seconds:.0f} s") from None
        if done.returncode:
            reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]
            raise Failed(f"fails: {reason.split(':')[0][:60]}")
        seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return seen


def install_fastmcp(folder: Path) -> FastMcp | None:
    """Return FastMCP 4.1.x in this folder, installed if missing; None if that fails, with the reason on stderr."""
    python = folder / "bin" / "python"
    try:
        if not python.exists():
            venv.create(folder, with_pip=True, clear=True)
        if _version(python) is None:
            _install(python)
        version = _version(python)
    except (OSError, subprocess.SubprocessError) as error:
        _complain(error)
        return None
    return None if version is None else FastMcp(python=python, version=version)


def _install(python: Path) -> None:
    """Install a version whose dependencies all resolve, then upgrade: some indexes lack the certifi version it
    requires.

    uvloop and httptools are not its dependencies; the gateway and the proxy run on them.
    """
    _pip(python, f"fastmcp=={_WANTED}", "uvloop", "httptools", "pyyaml")
    try:
        _pip(python, "--upgrade", "--no-deps", f"fastmcp=={_WANTED}")
        _pip(python, "--no-deps", f"fastmcp-slim=={_version(python)}", "certifi")
    except subprocess.SubprocessError as error:
        _complain(error)


def _pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=_INSTALL_S)


def _version(python: Path) -> str | None:
    asked = "import fastmcp; from importlib.metadata import version; print(version('fastmcp'))"
    done = subprocess.run([str(python), "-c", asked], capture_output=True, timeout=120, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else None


def _complain(error: Exception) -> None:
    printed = getattr(error, "stderr", None) or b""
    print(f"FastMCP: {error}\n{printed.decode(errors='replace')[-1500:]}", file=sys.stderr)
