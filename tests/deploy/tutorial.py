"""Runs the commands of `docs/tutorial.md` in one shell; `python -m tests.deploy.tutorial` writes their output into it.

The gateway, PostgreSQL, Redis and the example's API are real. Ports and addresses of the page are replaced by free ones
before a command runs, and back in its output.
"""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from gateway.embedded.binaries import postgres_programs
from tests.deploy.compose import ROOT
from tests.deploy.sockets import free_port
from tests.deploy.topology import clean_environment
from tests.support.kept_connections import run_apart
from tests.support.servers import TestServers, execute, running_servers

PAGE = ROOT / "docs" / "tutorial.md"
_BLOCK = re.compile(r"^(<!-- not run: .* -->\n)?```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "end-of-command"
_PATIENCE_S = 240
_KEY = re.compile(r"mcpg_[a-z]+_[0-9a-z]{20}_[A-Za-z0-9-]{51}")
_NORMAL = (
    (_KEY, "mcpg_live_…"),
    (re.compile(r"\b([a-z]{3})_[0-9a-z]{20}\b"), r"\1_2x4k7m9p3r5t8v6w1y0z"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?"), "2030-01-31T12:00:00"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2030-01-31 12:00"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "5a0c1e5f0c1d2e3f"),
    (re.compile(r"\b[\d.]+ (m?s|[MG]iB)\b"), r"5 \1"),
    (re.compile(r"^(?:Reading|Sending|Waiting) .*…\n", re.MULTILINE), ""),
    (re.compile(r"\bapplied 0001, [\d, ]+"), "applied 0001, …"),
    (re.compile(r"\bat 0\d{3}\b"), "at 0055"),
)
"""Parts that differ from run to run, and their text on the page."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of the page with the output that the page shows."""

    command: str
    output: str


def shown_commands(text: str) -> list[Shown]:
    """The commands of the page, in their order, but for those that another test runs."""
    return [one for found in _BLOCK.finditer(text) if found[1] is None for one in _commands(found[2])]


def renewed(text: str, outputs: Sequence[str]) -> str:
    """The page with these outputs."""
    left = iter(outputs)

    def write(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[0]
        lines = [f"$ {one.command}\n{next(left)}" for one in _commands(found[2])]
        return f"```console\n{''.join(lines)}```"

    return _BLOCK.sub(write, text)


def normal(text: str) -> str:
    """The text without what differs from run to run."""
    for pattern, shown in _NORMAL:
        text = pattern.sub(shown, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n" if text.strip() else ""


def run_commands(servers: TestServers, folder: Path, commands: Sequence[str]) -> list[str]:
    """The outputs of the commands, as the page shows them.

    Raises:
        AssertionError: a command ended with a code other than 0.
    """
    for name in ("deploy", "examples"):
        (folder / name).symlink_to(ROOT / name)
    with _bare_server(servers) as host:
        places = {
            "127.0.0.1:8080": f"127.0.0.1:{(port := free_port())}",
            "127.0.0.1:8091": f"127.0.0.1:{(library := free_port())}",
            "examples.library 8091": f"examples.library {library}",
            "redis://localhost:6379/0": servers.empty_redis(),
        }
        environment = _environment(host, port, folder)
        outputs = asyncio.run(_run(commands, environment, folder, places))
    backwards = {there: here for here, there in places.items()} | {str(folder): "/srv/gateway"}
    return [normal(_replaced(output, backwards)) for output in outputs]


def _commands(block: str) -> Iterator[Shown]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        count = 1 + next(number for number, line in enumerate(lines) if not line.endswith("\\\n"))
        yield Shown("".join(lines[:count]).rstrip("\n"), "".join(lines[count:]))


@contextmanager
def _bare_server(servers: TestServers) -> Generator[str]:
    """The host of a PostgreSQL without the database and logins of the gateway, as its administrator finds it new."""
    url = servers.superuser_url
    for statement in ("drop database gateway", "drop role gateway_owner, gateway_app, gateway_definer"):
        run_apart(execute(url, statement))
    yield parse_qs(urlsplit(url).query)["host"][0]


def _environment(host: str, port: int, folder: Path) -> dict[str, str]:
    programs = postgres_programs(None, Path("/nonexistent"))
    path = os.pathsep.join([str(Path(sys.executable).parent), str(programs), os.environ["PATH"]])
    return clean_environment() | {
        "PATH": path,
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PGHOST": host,
        "PGUSER": "postgres",
        "GATEWAY_PORT": str(port),
        "GATEWAY_URL": f"http://127.0.0.1:{port}",
    }


async def _run(
    commands: Sequence[str], environment: Mapping[str, str], folder: Path, places: Mapping[str, str]
) -> list[str]:
    shell = await asyncio.create_subprocess_exec(
        "/bin/bash",
        "--norc",
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    outputs: list[str] = []
    key = "KEY"
    try:
        for command in commands:
            typed = re.sub(r"\bKEY\b", key, _replaced(command, places))
            shell.stdin.write(f"{typed}\nprintf '\\n%s %s\\n' {_END} $?\n".encode())
            async with asyncio.timeout(_PATIENCE_S):
                reported = (await shell.stdout.readuntil(f"\n{_END} ".encode())).decode().removesuffix(f"\n{_END} ")
                code = (await shell.stdout.readline()).decode().strip()
            assert code == "0", f"{command}: {reported}"
            found = _KEY.search(reported)
            key = key if found is None else found[0]
            outputs.append(reported)
    finally:
        shell.stdin.write(b"kill $(jobs -p) 2>/dev/null; wait; exit\n")
        async with asyncio.timeout(_PATIENCE_S):
            await shell.wait()
    return outputs


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for before, after in places.items():
        text = text.replace(before, after)
    return text


def main() -> None:
    """Write the outputs of this tree into the page."""
    with tempfile.TemporaryDirectory() as scratch, running_servers() as servers:
        text = PAGE.read_text()
        outputs = run_commands(servers, Path(scratch), [one.command for one in shown_commands(text)])
        PAGE.write_text(renewed(text, outputs))


if __name__ == "__main__":
    main()
