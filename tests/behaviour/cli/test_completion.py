"""Completion of names by real shells, which ask a running gateway."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from gateway.cli.limits import COMPLETION_S
from tests.behaviour.cli.conftest import Terminal, environment
from tests.support.documents import pets
from tests.support.gateway import RunningGateway
from tests.support.primitives import add, static_tool, text_resource

_HOSTILE = ("$(touch pwned)", "a;b", "`x`", "-rf", "a b", "a*", "a\nb", "~", "a'b", "{a,b}")


def _complete(folder: Path, shell: str, words: list[str], variables: Mapping[str, str]) -> list[str]:
    """The words that a shell is offered for the last one of a line, by the variables of its completion script."""
    line = {
        "bash": {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)},
        "zsh": {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)},
        "fish": {"COMP_WORDS": " ".join(words), "COMP_CWORD": words[-1]},
    }[shell]
    settings = environment(**variables, **line, _GATEWAY_COMPLETE=f"{shell}_complete")
    done = subprocess.run(
        [sys.executable, "-m", "gateway"], check=False, cwd=folder, env=settings, capture_output=True, text=True
    )
    assert done.stderr == ""
    if shell == "zsh":
        return done.stdout.splitlines()[1::3]
    return [text.split(",", 1)[1].split("\t")[0] for text in done.stdout.splitlines() if "," in text]


async def complete(terminal: Terminal, *words: str, shell: str = "bash", **variables: str) -> list[str]:
    """The offered words of a line."""
    wanted = {**terminal.variables, **variables}
    return await anyio.to_thread.run_sync(_complete, terminal.folder, shell, ["gateway", *words], wanted)


async def _prepare(gateway: RunningGateway) -> None:
    await gateway.create_tenant("acme")
    for name in ("say", "say_again", "tell"):
        await add(gateway, "acme", "tools", static_tool(name))
    animals = {"name": "animals", "prefix": "animals", "document": pets("https://pets.example")}
    (await gateway.admin.post("/tenants/acme/sources", json=animals)).raise_for_status()
    await gateway.create_key("acme")


async def test_names_are_those_of_the_gateway(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: arguments and options that name an object are completed, for kinds, records and keys (CLI-3)."""
    await _prepare(gateway)

    assert await complete(terminal, "tool", "show", "sa") == ["say", "say_again"]
    assert await complete(terminal, "tool", "delete", "say", "sa") == ["say_again"]
    assert await complete(terminal, "source", "refresh", "") == ["animals"]
    assert await complete(terminal, "source", "report", "an") == ["animals"]
    assert await complete(terminal, "call", "te") == ["tell"]
    assert await complete(terminal, "key", "revoke", "") == ["test"]
    assert await complete(terminal, "tool", "list", "--source", "") == ["animals"]
    assert await complete(terminal, "tool", "update", "te") == ["tell"]
    assert await complete(terminal, "tool", "list", "--tenant", "ac") == ["acme"]
    assert await complete(terminal, "tenant", "show", "") == ["acme"]
    assert await complete(terminal, "--tenant", "acme", "tool", "show", "te", GATEWAY_TENANT="") == ["tell"]
    for shell in ("zsh", "fish"):
        assert await complete(terminal, "tool", "show", "sa", shell=shell) == ["say", "say_again"]


async def test_a_completion_fails_silently(terminal: Terminal, gateway: RunningGateway) -> None:
    """Ours: without a gateway, a key, a tenant or a permission nothing is offered, and nothing is printed (CLI-3)."""
    await _prepare(gateway)
    words = ("tool", "show", "")

    assert await complete(terminal, *words, GATEWAY_URL="http://127.0.0.1:1") == []
    assert await complete(terminal, *words, GATEWAY_URL="not a url") == []
    assert await complete(terminal, *words, GATEWAY_OPERATOR_KEY="x y") == []
    assert await complete(terminal, *words, GATEWAY_OPERATOR_KEY="wrong") == []
    assert await complete(terminal, *words, GATEWAY_TENANT="none") == []


@contextmanager
def _slow_server() -> Generator[str]:
    """A server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_a_completion_waits_about_a_second_for_a_gateway(terminal: Terminal) -> None:
    """Ours: a gateway that hangs does not hang the shell (CLI-3)."""
    with _slow_server() as url:
        started = time.monotonic()
        assert await complete(terminal, "tool", "show", "", GATEWAY_URL=url) == []
        slow_s = time.monotonic() - started

    assert COMPLETION_S / 2 <= slow_s < 30, "the wait is bounded, on a busy machine too"


async def test_a_name_that_a_shell_obeys_is_not_offered(terminal: Terminal, gateway: RunningGateway) -> None:
    """Attack: a name of a tenant is inserted into an operator's command line, and runs another command (CLI-3)."""
    await gateway.create_tenant("acme")
    for name in ("Reports", *_HOSTILE):
        body: Any = {"name": name, "redirect_uris": ["https://reports.example/callback"], "confidential": True}
        await gateway.admin.post("/tenants/acme/clients", json=body)
    listed = (await gateway.admin.get("/tenants/acme/clients")).json()["items"]
    assert len(listed) > 5

    for shell in ("bash", "zsh", "fish"):
        assert await complete(terminal, "client", "show", "", shell=shell) == ["Reports"]


_BASH = r"""
set -e
eval "$(gateway completion bash)"
COMP_WORDS=(gateway tool show sa); COMP_CWORD=3; COMP_LINE='gateway tool show sa'; COMP_POINT=${#COMP_LINE}
_gateway_completion gateway
printf '%s\n' "${COMPREPLY[@]}"
"""
_BASH_COLON = r"""
set -e
eval "$(gateway completion bash)"
COMP_WORDS=(gateway resource show docs : //); COMP_CWORD=5
COMP_LINE='gateway resource show docs://'; COMP_POINT=${#COMP_LINE}
_gateway_completion gateway
printf '%s\n' "${COMPREPLY[@]}"
"""
_FISH = r"""
gateway completion fish | source
complete -C 'gateway tool show sa'
"""
_ZSH = r"""
compdef() { : }
eval "$(gateway completion zsh)"
words=(gateway tool show sa) CURRENT=4
_describe() { print -rl -- "${(@P)2}" "${(@P)3}" }
compadd() { eval "print -rl -- \${$@[-1]}" }
_gateway_completion
"""


@pytest.mark.parametrize(
    ("shell", "script", "offered"),
    [
        ("bash", _BASH, ["say", "say_again"]),
        ("bash", _BASH_COLON, ["//a", "//b"]),
        ("fish", _FISH, ["say", "say_again"]),
        ("zsh", _ZSH, ["say", "say_again"]),
    ],
)
async def test_the_script_completes_in_the_shell(
    shell: str, script: str, offered: list[str], terminal: Terminal, gateway: RunningGateway
) -> None:
    """Ours: the printed script makes the real shell offer the names (CLI-3)."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    await _prepare(gateway)
    for name in ("docs://a", "docs://b"):
        await add(gateway, "acme", "resources", text_resource(name))
    folder = terminal.folder / "bin"
    folder.mkdir()
    program = folder / "gateway"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gateway "$@"\n')
    program.chmod(0o755)
    variables = environment(**terminal.variables, PATH=f"{folder}:{os.environ['PATH']}", HOME=str(terminal.folder))

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [shell, "-c", script], check=False, cwd=terminal.folder, env=variables, capture_output=True, text=True
        )

    done = await anyio.to_thread.run_sync(run)

    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered, done
