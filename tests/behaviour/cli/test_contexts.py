"""Contexts: the stored key of `gateway login`, the commands that use it, and its readers."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.cli.conftest import Terminal
from tests.support.commands import Ended
from tests.support.gateway import OPERATOR_KEY, RunningGateway
from tests.support.primitives import add, static_tool

_FOLDER = "mcp-tenant-gateway"
_BACKEND = '''
import json, pathlib
import keyring.backend

class Backend(keyring.backend.KeyringBackend):
    """A backend that stores passwords in a file of the test, as that of a desktop does in its own."""

    priority = 5
    _file = pathlib.Path(__file__).with_suffix(".json")

    def _read(self):
        return json.loads(self._file.read_text()) if self._file.exists() else {}

    def get_password(self, service, username):
        return self._read().get(f"{service}/{username}")

    def set_password(self, service, username, password):
        self._file.write_text(json.dumps({**self._read(), f"{service}/{username}": password}))

    def delete_password(self, service, username):
        self._file.write_text(json.dumps({k: v for k, v in self._read().items() if k != f"{service}/{username}"}))
'''


class Person:
    """A person with a home folder, whose environment has no variable of the gateway."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self.home = terminal.folder
        self.folder = self.home / ".config" / _FOLDER
        self.variables = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / ".config")}

    async def run(self, *arguments: str, given: str = "", **variables: str) -> Ended:
        """Run a command; no output ever has a key."""
        hidden = {"GATEWAY_URL": "", "GATEWAY_OPERATOR_KEY": "", "GATEWAY_TENANT": ""}
        ended = await self._terminal.run(*arguments, given=given, **{**hidden, **self.variables, **variables})
        for key in filter(None, (given.strip(), OPERATOR_KEY)):
            assert key not in ended.out + ended.err
        return ended

    async def do(self, *arguments: str, given: str = "", **variables: str) -> Any:
        """Run a command, which must succeed, and return its JSON."""
        ended = await self.run(*arguments, "--json", given=given, **variables)
        assert ended.code == 0, ended.err
        return json.loads(ended.out)


@pytest.fixture
async def person(terminal: Terminal, gateway: RunningGateway) -> Person:
    """A person who has not signed in."""
    for slug in ("acme", "other"):
        await gateway.create_tenant(slug)
        await add(gateway, slug, "tools", static_tool(f"{slug}_say"))
    return Person(terminal)


async def test_a_person_signs_in_and_out(person: Person, gateway: RunningGateway) -> None:
    """Ours: after `login`, commands need neither a URL nor a tenant nor a key (CLI-5)."""
    key = await gateway.create_key("acme", "mcp", "admin")
    made = await person.do("login", f"{gateway.url}/t/acme/mcp", "--name", "work", given=f"{key}\n")

    assert made == {"name": "work", "url": gateway.url, "tenant": "acme", "key": "file"}
    listed = await person.do("tool", "list")
    assert [one["definition"]["name"] for one in listed] == ["acme_say"]
    assert "hello" in (await person.run("call", "acme_say")).out
    [context] = await person.do("context", "list")
    assert context == {**made, "current": True}
    assert await person.do("context", "show") == made
    await person.do("logout")
    unsigned = await person.run("tool", "list")
    assert (unsigned.code, "gateway login" in unsigned.err) == (4, True)
    assert key not in "".join(path.read_text() for path in person.folder.iterdir())
    assert (await person.do("context", "delete", "work")) == [{"deleted": "work"}]
    assert await person.do("context", "list") == []


async def test_a_refused_key_is_not_stored(person: Person, gateway: RunningGateway) -> None:
    """Ours: `login` asks the gateway, unless an option forbids it; a key for MCP alone is a key, too (CLI-5)."""
    refused = await person.run("login", gateway.url, "--tenant", "acme", given=f"mcpg_live_{'a' * 40}\n")
    assert (refused.code, person.folder.exists()) == (4, False)
    nowhere = await person.run("login", "http://127.0.0.1:1", given="k" * 40 + "\n")
    assert (nowhere.code, person.folder.exists()) == (3, False)
    for name in ("../x", "a/b", "-x", ""):
        wrong = await person.run("login", gateway.url, f"--name={name}", given=OPERATOR_KEY + "\n")
        assert (wrong.code, person.folder.exists()) == ((2, False) if name else (0, True)), name
    mcp = await gateway.create_key("acme")
    assert (await person.do("login", gateway.url, "--tenant", "acme", given=f"{mcp}\n"))["name"] == "acme"
    assert "hello" in (await person.run("call", "acme_say")).out


async def test_options_and_variables_precede_a_context(person: Person, gateway: RunningGateway) -> None:
    """Ours: options, then variables, then the current context; `--context` is an option (CLI-5)."""
    await person.do("login", gateway.url, "--tenant", "acme", given=f"{OPERATOR_KEY}\n")
    await person.do("login", gateway.url, "--tenant", "other", given=f"{OPERATOR_KEY}\n")

    async def tool(*options: str, **variables: str) -> str:
        [found] = await person.do("tool", "list", *options, **variables)
        return str(found["definition"]["name"])

    assert await tool() == "other_say"
    assert await tool("--context", "acme") == "acme_say"
    assert await tool(GATEWAY_CONTEXT="acme") == "acme_say"
    assert await tool("--tenant", "acme") == "acme_say"
    assert await tool(GATEWAY_TENANT="acme") == "acme_say"
    assert await tool("--context", "acme", "--tenant", "other") == "other_say"
    assert await tool("--context", "acme", GATEWAY_TENANT="other", GATEWAY_CONTEXT="other") == "acme_say"
    await person.do("context", "use", "acme")
    assert await tool() == "acme_say"
    assert (await person.run("tool", "list", GATEWAY_OPERATOR_KEY="wrong" * 8)).code == 4
    assert await tool("--context", "other", GATEWAY_OPERATOR_KEY="wrong" * 8) == "other_say"
    both = await person.run("tool", "list", "--context", "acme", "--url", gateway.url)
    assert (both.code, "not both" in both.err) == (2, True)
    near = await person.run("tool", "list", "--context", "acm")
    assert (near.code, "did you mean 'acme'?" in near.err) == (5, True)
    await person.do("context", "use", "--none")
    assert (await person.run("tool", "list")).code == 4


async def test_a_stored_key_goes_to_its_own_url_only(person: Person, gateway: RunningGateway) -> None:
    """Attack: another URL, of an option or a variable, receives the key of the current context (CLI-5)."""
    await person.do("login", gateway.url, "--tenant", "acme", given=f"{OPERATOR_KEY}\n")
    other = gateway.url.replace("127.0.0.1", "localhost")

    for options, variables in (
        (("--url", other), {}),
        ((), {"GATEWAY_URL": other}),
        ((), {"GATEWAY_URL": other, "GATEWAY_CONTEXT": "acme"}),
    ):
        refused = await person.run("tool", "list", "--tenant", "acme", *options, **variables)
        assert (refused.code, "no credential" in refused.err) == (4, True), (options, variables)
    bridged = await person.run("stdio", "--url", f"{other}/t/acme/mcp")
    assert (bridged.code, "no credential" in bridged.err) == (4, True)


async def test_the_file_of_keys_is_private(person: Person, gateway: RunningGateway) -> None:
    """Attack: another user of the machine reads a key; a file that others can read is refused (CLI-5)."""
    usual = os.umask(0)
    try:
        await person.do("login", gateway.url, "--tenant", "acme", given=f"{OPERATOR_KEY}\n")
    finally:
        os.umask(usual)
    keys = person.folder / "keys.json"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert stat.S_IMODE(person.folder.stat().st_mode) & 0o022 == 0

    for mode in (0o640, 0o604, 0o660):
        keys.chmod(mode)
        for line in (("tool", "list"), ("logout",), ("login", gateway.url, "--tenant", "other")):
            refused = await person.run(*line, given=f"{OPERATOR_KEY}\n")
            assert (refused.code, "chmod 600" in refused.err) == (4, True), (oct(mode), line, refused)
    keys.chmod(0o600)
    elsewhere = person.home / "elsewhere.json"
    keys.rename(elsewhere)
    keys.symlink_to(elsewhere)
    assert (await person.run("tool", "list")).code != 0
    keys.unlink()
    keys.write_text("[]")
    keys.chmod(0o600)
    assert (await person.run("tool", "list")).code == 1


async def test_a_keyring_that_works_has_the_key(person: Person, gateway: RunningGateway) -> None:
    """Ours: a keyring is preferred; one that fails is none, and a lost key is explained (CLI-5)."""
    module = Path(person.home) / "keyring_of_test.py"
    module.write_text(_BACKEND)
    python_path = f"{Path(__file__).parents[3]}:{person.home}"
    used = {"PYTHON_KEYRING_BACKEND": "keyring_of_test.Backend", "PYTHONPATH": python_path}

    made = await person.do("login", gateway.url, "--tenant", "acme", given=f"{OPERATOR_KEY}\n", **used)
    assert made["key"] == "keyring"
    assert not (person.folder / "keys.json").exists()
    assert OPERATOR_KEY not in (person.folder / "contexts.json").read_text()
    assert len(await person.do("tool", "list", **used)) == 1
    broken = await person.run("tool", "list", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    assert (broken.code, "gateway login" in broken.err) == (1, True)
    await person.do("logout", **used)
    assert json.loads(module.with_suffix(".json").read_text()) == {}
    failing = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    assert (await person.do("login", gateway.url, "--tenant", "acme", given=f"{OPERATOR_KEY}\n", **failing))[
        "key"
    ] == "file"
