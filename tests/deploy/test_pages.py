"""Documents agree with the code: reference pages, error messages, links, and the documented commands."""

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.deploy import pages
from tests.deploy.compose import ROOT
from tests.deploy.sockets import free_port
from tests.deploy.topology import clean_environment
from tests.support.forks import Forked

DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
PATIENCE_S = 240


def test_generated_files_of_the_tree_equal_the_code() -> None:
    """Ours: the shipped pages and the rows of guards are as `python -m tests.deploy.pages` writes them."""
    written = pages.pages()

    assert len(written) == 3
    assert [name for name, text in written.items() if (DOCS / name).read_text() != text] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    """Ours: no page links to a missing one."""
    text = (DOCS / name).read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    files = re.findall(r"`((?:deploy|docs|examples|benchmarks)/[\w./-]+)`", text)

    assert [link for link in links if not (DOCS / link).exists()] == []
    made = {"deploy/secrets/", "deploy/secrets/secret_keys"}
    assert [path for path in files if path not in made and not (ROOT / path).exists()] == []


@cache
def _texts_of_the_source() -> tuple[str, ...]:
    """Every text in the source as one line, `…` for what is put in."""
    found: list[str] = []
    for path in (ROOT / "gateway").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.append("".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values))
    return tuple(text.replace("`", "") for text in found)


def _is_printed(message: str) -> bool:
    wanted = "(?:.*)".join(re.escape(part) for part in re.split("…", message))
    return any(re.search(wanted, text, re.DOTALL) for text in _texts_of_the_source())


def test_every_message_of_the_troubleshooting_page_exists() -> None:
    """Ours: the text of a message leads to its explanation."""
    messages = re.findall(r"^### `(.+)`$", (DOCS / "troubleshooting.md").read_text(), re.MULTILINE)

    assert len(messages) >= 35
    assert [message for message in messages if not _is_printed(message)] == []
    assert not _is_printed("the gateway is … on fire")


@pytest.mark.parametrize(("page", "part"), [("docs/quickstart.md", "Step by step"), ("README.md", "A document")])
async def test_the_commands_of_a_page_lead_step_by_step_to_a_call(page: str, part: str, tmp_path: Path) -> None:
    """Ours: beside a running example, in their order and word for word but for the key and its port (CLI-1, SRV-6)."""
    text = (ROOT / page).read_text().partition(f"## {part}\n")[2].partition("\n## ")[0]
    block = text.partition("```console\n")[2].partition("```")[0]
    (path, _), *steps = re.findall(r"^\$ (.+)\n((?:[^$\n].*\n)*)", block, re.MULTILINE)
    assert path.startswith("export PATH=")
    reported, key = "", "KEY"
    async with _example(tmp_path) as (environment, upstream):
        for step, expected in steps:
            typed = step.replace("KEY", key).replace("http://127.0.0.1:8091", upstream)
            ended = await anyio.run_process(["/bin/sh", "-euc", typed], env=environment, cwd=ROOT, check=False)
            assert ended.returncode == 0, f"{step}\n{ended.stderr.decode()}"
            reported = ended.stdout.decode()
            missing = [line for line in expected.splitlines() if not _is_shown(line, reported)]
            assert missing == [], f"{step}\n{reported}"
            shown = re.search(r"mcpg_\w+_\S+", reported)
            key = key if shown is None else shown[0]

    assert key != "KEY", "the key is shown"
    assert '"books"' in reported, "the last step is a call"


def _is_shown(line: str, output: str) -> bool:
    """True if a line of the output begins with a documented one; `…` in it matches any text."""
    pattern = ".*".join(re.escape(part) for part in line.split("…"))
    return re.search(f"^{pattern}", output, re.MULTILINE) is not None


def test_the_quickstart_prepares_secrets_with_the_command_it_names(tmp_path: Path) -> None:
    """Ours: the first of the two commands for HTTPS runs; the second one needs an engine (SRV-6)."""
    text = (DOCS / "quickstart.md").read_text().partition("## With HTTPS")[2]
    commands = re.findall(r"^\$ (.+)$", text, re.MULTILINE)

    assert commands[:2] == ["deploy/compose/prepare", "docker compose run --rm welcome"]
    subprocess.run([ROOT / commands[0], tmp_path / "secrets"], check=True, capture_output=True)
    assert (tmp_path / "secrets/operator_key").stat().st_size == 64


@asynccontextmanager
async def _example(folder: Path) -> AsyncGenerator[tuple[dict[str, str], str]]:
    """Services of `make run`, at ports of its own: settings that commands need to find it, and the URL of the example
    API.
    """
    port = free_port()
    environment = clean_environment() | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GATEWAY_PORT": str(port),
        "GATEWAY_DATA_DIR": str(folder / "gateway"),
    }
    child = await anyio.to_thread.run_sync(_launch, environment, folder / "log")
    try:
        with anyio.fail_after(PATIENCE_S):
            upstream = await anyio.to_thread.run_sync(_read_upstream, child, abandon_on_cancel=True)
        key = (folder / "gateway/operator-key").read_text().strip()
        yield {**environment, "GATEWAY_URL": f"http://127.0.0.1:{port}", "GATEWAY_OPERATOR_KEY": key}, upstream
    finally:
        child.send_signal(signal.SIGINT)
        with anyio.move_on_after(PATIENCE_S, shield=True):
            await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
        child.end()


def _launch(environment: dict[str, str], log: Path) -> Forked:
    return Forked(["--upstream-port", "0"], environment, module="examples.run", folder=ROOT, errors=log)


def _read_upstream(child: Forked) -> str:
    """URL of the API that the example prints; it serves by then."""
    assert child.stdout is not None
    for line in child.stdout:
        if (found := re.match(r"The example library is at (\S+),", line.decode())) is not None:
            return found[1]
    raise AssertionError("the example ended before it was ready")
