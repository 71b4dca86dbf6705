"""A newcomer: an empty folder, a home of its own, nothing running, and the commands of the first page."""

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio import to_thread
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from examples.library.upstream import Library, build_upstream
from examples.serving import serving
from tests.deploy.compose import ROOT
from tests.deploy.pages import first_command

pytestmark = pytest.mark.long
PATIENCE_S = 600
_ANSWER_S = 60
_UNPRIVILEGED = "nobody"
_USABLE = "import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))"
_KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy", "no_proxy")
"""Variables that a login shell has anyway. Where packages come from (`PIP_…`) is the machine's business, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """A fresh clone, its folder, its user and its Python."""

    clone: Path
    home: Path
    user: int | None
    python: str
    steps: list[str] = field(default_factory=list[str])

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a newcomer: nothing of ours but a port, since others may use the usual one on this machine."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.startswith("PIP_")}
        return {**kept, "HOME": str(self.home), "PYTHON": self.python, "GATEWAY_PORT": "0"}

    @contextmanager
    def step(self, reported: str) -> Generator[None]:
        """One step of the page, with the time it took."""
        began = time.monotonic()
        yield
        self.steps.append(f"{time.monotonic() - began:6.1f} s  {reported}")

    @contextmanager
    def typed(self, command: str) -> Generator["subprocess.Popen[str]"]:
        """A command that goes on until Ctrl-C, which ends all of it."""
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=self.clone,
            env=self.environment,
            user=self.user,
            group=self.user if self.user is None else pwd.getpwuid(self.user).pw_gid,
            extra_groups=None if self.user is None else [],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as child:
            try:
                yield child
                os.killpg(child.pid, signal.SIGINT)
                child.communicate(timeout=_ANSWER_S)
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)


@pytest.fixture
def newcomer() -> Iterator[Newcomer]:
    """With the files of this tree, as a clone has them; as an unprivileged user where the machine's Python
    permits it.
    """
    folder = Path(tempfile.mkdtemp(prefix="gwn-"))
    try:
        folder.chmod(0o755)
        clone, home = folder / "gateway", folder / "home"
        home.mkdir()
        _copy_tree(clone)
        user, python = _choose_user()
        if user is not None:
            for path in (clone, home, *clone.rglob("*")):
                os.chown(path, user, pwd.getpwuid(user).pw_gid)
        yield Newcomer(clone=clone, home=home, user=user, python=python)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _copy_tree(clone: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, clone / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def _choose_user() -> tuple[int | None, str]:
    """Another user and a Python that it can run; our own where we are not root, or only root can run one."""
    ours = str(Path(sys.executable).resolve())
    if os.geteuid() != 0:
        return None, ours
    try:
        unprivileged = pwd.getpwnam(_UNPRIVILEGED)
    except KeyError:
        return None, ours
    others = (shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") for name in ("python3", "python3.11"))
    for python in (ours, *filter(None, others)):
        tried = subprocess.run(
            ["/bin/sh", "-c", f"exec '{python}' -c '{_USABLE}'"],
            user=unprivileged.pw_uid,
            group=unprivileged.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return unprivileged.pw_uid, python
    return None, ours


def _read_until_ready(child: "subprocess.Popen[str]") -> str:
    """Output up to the last client's line."""
    assert child.stdout is not None
    printed = ""
    for line in child.stdout:
        printed += line
        if line.startswith("curl"):
            return printed
    raise AssertionError(f"it ended before it was ready:\n{printed[-3000:]}")


def _reported(printed: str, name: str) -> str:
    found = re.search(rf"^{name}\s+(\S.*)$", printed, re.MULTILINE)
    assert found is not None, printed
    return found[1].strip()


async def test_the_first_page_leads_from_nothing_to_the_first_tool_call(newcomer: Newcomer) -> None:
    """Ours: one command, then one line pasted; steps and time are printed (CLI-1, SRV-6)."""
    command = first_command("docs/quickstart.md")
    with anyio.fail_after(PATIENCE_S), newcomer.typed(command) as child:
        with newcomer.step(f"$ {command}"):
            printed = await to_thread.run_sync(_read_until_ready, child, abandon_on_cancel=True)
        url, header, curl = (_reported(printed, name) for name in ("MCP URL", "header", "curl"))
        with newcomer.step("$ curl …: the line for curl, as it was printed"):
            listed = await anyio.run_process(["/bin/sh", "-euc", curl], env=newcomer.environment)
        with newcomer.step("the URL and the header given to a client: a tool is called"):
            called = await _call_first(url, header)
    _print(newcomer)

    assert b'"countStock"' in listed.stdout
    assert not called.is_error, called
    assert called.structured_content is not None
    assert called.structured_content["books"] == 4
    assert (newcomer.clone / ".gateway").is_dir()
    assert not (newcomer.home / ".gateway").exists()


async def test_the_line_of_the_readme_serves_a_document_from_an_empty_folder(tmp_path: Path) -> None:
    """Ours: no clone and no environment; `uvx` installs the wheel with the extra, and a tool answers (CLI-1, SRV-6)."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    home.mkdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    await anyio.run_process(build, cwd=ROOT)
    (folder / "openapi.yaml").write_bytes((ROOT / "examples/library/openapi.yaml").read_bytes())
    before = sorted(path.name for path in folder.iterdir())
    reader = Newcomer(clone=folder, home=home, user=None, python=sys.executable)
    line = f"PATH={Path(sys.executable).parent}:$PATH {first_command('README.md')}"
    with (
        serving(build_upstream(Library()), port=0) as port,
        anyio.fail_after(PATIENCE_S),
        reader.typed(f"{line} --base-url http://127.0.0.1:{port}") as child,
        reader.step(f"$ {line}"),
    ):
        printed = await to_thread.run_sync(_read_until_ready, child, abandon_on_cancel=True)
        called = await _call_first(_reported(printed, "MCP URL"), _reported(printed, "header"))
    _print(reader)

    shown = [each for each in (ROOT / "README.md").read_text().splitlines() if each.startswith("10 ")]
    assert shown
    assert all(each in printed for each in shown)
    assert not called.is_error, called
    assert called.structured_content is not None
    assert called.structured_content["books"] == 4
    assert sorted(path.name for path in folder.iterdir()) == before


async def _call_first(url: str, header: str) -> CallToolResult:
    name, _, value = header.partition(": ")
    async with (
        httpx2.AsyncClient(headers={name: value}, timeout=_ANSWER_S, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        return await client.call_tool("countStock", {})


def _print(newcomer: Newcomer) -> None:
    who = "ourselves" if newcomer.user is None else pwd.getpwuid(newcomer.user).pw_name
    print(f"a newcomer ({who}, Python {newcomer.python}):", *newcomer.steps, sep="\n  ")
