"""Passwords and keys that change in their files while a replica serves: no restart, and no words for strangers."""

import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx
import pytest

from gateway.app.readiness import Readiness
from tests.deploy.sockets import free_port
from tests.support.forks import Forked
from tests.support.gateway import OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.primitives import add, static_tool
from tests.support.replicas import commanding, until
from tests.support.servers import TestDatabase, TestServers, execute
from tests.support.serving import clients_of

NEW_KEY = "the-new-operator-key-of-the-tests-0123"
_LOGIN = "rotating"
_END = f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = '{_LOGIN}'"


@dataclass(slots=True)
class Rotating:
    """A replica whose secrets are in files, and the servers that know them."""

    gateway: RunningGateway
    process: Forked
    folder: Path
    database: TestDatabase
    redis_url: str
    log: Path
    terminal: int
    """The other end of its standard input."""

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(f"{text}\n")

    def lines(self, event: str) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    async def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        with contextlib.suppress(httpx.TransportError):
            answer: object = (await self.gateway.http.get("/readyz")).json()
            return answer == {"status": "ready"}
        return False


def _database_url(database: TestDatabase, password: str) -> str:
    parts = urlsplit(database.app_url)
    return f"postgresql://{_LOGIN}:{password}@{parts.path}?{parts.query}"


def _redis_url(redis_url: str, password: str) -> str:
    parts = urlsplit(redis_url)
    return f"unix://{_LOGIN}:{password}@{parts.path}?{parts.query}"


@contextmanager
def _password_wanted(database: TestDatabase) -> Generator[None]:
    """PostgreSQL requires the password of this login; the rule precedes those of the test's server."""
    rules = Path(parse_qs(urlsplit(database.app_url).query)["host"][0]).parent / "postgres" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"local all {_LOGIN} scram-sha-256\n{before}")
    try:
        yield
    finally:
        rules.write_text(before)


@pytest.fixture
async def rotating(servers: TestServers, tmp_path: Path) -> AsyncGenerator[Rotating]:
    """A replica that serves, with one tenant and one tool."""
    with servers.database() as database, servers.held_redis() as redis_url, _password_wanted(database):
        superuser = database.superuser_url
        await execute(superuser, f"create role {_LOGIN} login password 'old'")
        await execute(superuser, f"grant gateway_app to {_LOGIN}")
        await execute(superuser, "select pg_reload_conf()")
        with commanding(redis_url) as command:
            command("ACL", "SETUSER", _LOGIN, "reset", "on", ">old", "~*", "&*", "+@all")
        try:
            async with _replica(tmp_path, database, redis_url) as started:
                yield started
        finally:
            with commanding(redis_url) as command:
                command("ACL", "DELUSER", _LOGIN)
            await execute(superuser, _END)
            await execute(superuser, f"drop role {_LOGIN}")
    await execute(servers.superuser_url, "select pg_reload_conf()")


@contextlib.asynccontextmanager
async def _replica(folder: Path, database: TestDatabase, redis_url: str) -> AsyncGenerator[Rotating]:
    texts = {
        "database_url": _database_url(database, "old"),
        "redis_url": _redis_url(redis_url, "old"),
        "operator_key": OPERATOR_KEY,
    }
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    variables |= {"GATEWAY_SECRET_KEYS": SECRET_KEY, "GATEWAY_LOG_FORMAT": "json"}
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n")
        variables[f"GATEWAY_{name.upper()}_FILE"] = str(folder / name)
    port, log = free_port(), folder / "log"
    terminal, slave = os.openpty()
    with Connection(slave, writable=False) as given:
        arguments = ["serve", "--port", str(port), "--data-dir", str(folder)]
        process = Forked(arguments, variables, given=given, errors=log)
    url = f"http://127.0.0.1:{port}"
    try:
        async with clients_of(url, OPERATOR_KEY) as (admin, http):
            gateway = RunningGateway(url, admin, http, Readiness())
            started = Rotating(gateway, process, folder, database, redis_url, log, terminal)
            await until(started.is_ready, seconds=60)
            await started.gateway.create_tenant("acme")
            await add(started.gateway, "acme", "tools", static_tool("hello"))
            yield started
    finally:
        process.end()
        os.close(terminal)


async def test_new_passwords_are_read_when_the_old_ones_are_refused(rotating: Rotating) -> None:
    """Ours: after a rotation the replica is ready by itself, and a stranger reads no server's words (SRV-4, ISO-6)."""
    gateway, superuser = rotating.gateway, rotating.database.superuser_url
    await execute(superuser, f"alter role {_LOGIN} password 'new'")
    await execute(superuser, _END)

    async def is_refused() -> bool:
        stranger = await gateway.rpc("acme", "nonsense", "tools/list")
        assert "password" not in stranger.text
        assert _LOGIN not in stranger.text
        return stranger.status_code == 503

    await until(is_refused)
    rotating.write("database_url", _database_url(rotating.database, "new"))
    await until(rotating.is_ready)

    with commanding(rotating.redis_url) as command:
        command("ACL", "SETUSER", _LOGIN, "resetpass", ">new")
        command("CLIENT", "KILL", "USER", _LOGIN)
    rotating.write("redis_url", _redis_url(rotating.redis_url, "new"))
    await until(lambda: "GATEWAY_REDIS_URL" in {line["name"] for line in rotating.lines("secret_reread")})
    await until(rotating.is_ready)

    assert (await gateway.rpc("acme", "nonsense", "tools/list")).status_code == 401
    assert "GATEWAY_DATABASE_URL" in {line["name"] for line in rotating.lines("secret_reread")}
    assert "'new'" not in rotating.log.read_text()
    assert ":new@" not in rotating.log.read_text()


async def test_a_hangup_reads_the_operator_keys_again(rotating: Rotating) -> None:
    """Ours: both keys are accepted during a rotation, each is named in the trail, and the old one ends (SAF-4)."""
    gateway = rotating.gateway
    bearer = {"authorization": f"Bearer {NEW_KEY}"}

    async def hang_up(*keys: str) -> None:
        rotating.write("operator_key", ",".join(keys))
        count = len(rotating.lines("configuration_reread"))
        rotating.process.send_signal(signal.SIGHUP)
        await until(lambda: len(rotating.lines("configuration_reread")) > count)

    assert (await gateway.admin.get("/tenants", headers=bearer)).status_code == 401
    await hang_up(NEW_KEY, "too short")  # changes nothing
    assert (await gateway.admin.get("/tenants", headers=bearer)).status_code == 401
    await hang_up(NEW_KEY, OPERATOR_KEY)
    for number, headers in enumerate(({}, bearer)):
        body = {"name": f"k{number}", "scopes": ["mcp"]}
        assert (await gateway.admin.post("/tenants/acme/keys", json=body, headers=headers)).status_code == 201
    await hang_up(NEW_KEY)
    assert (await gateway.admin.get("/tenants")).status_code == 401
    trail = (await gateway.admin.get("/tenants/acme/audit", headers=bearer)).json()["items"]

    new, old = rotating.lines("operator_keys_reread")[0]["names"]
    made = [entry for entry in trail if entry["action"] == "key.create"]
    assert [(entry["principal"], entry["detail"]["operator_key"]) for entry in made] == [
        ("operator", new),
        ("operator", old),
    ]
    assert rotating.lines("configuration_reread")[-1] == rotating.lines("configuration_reread")[-1] | {
        "changed": ["GATEWAY_OPERATOR_KEY"],
        "unchanged": ["GATEWAY_DATABASE_URL", "GATEWAY_REDIS_URL"],
        "only_at_start": ["GATEWAY_SECRET_KEYS"],
    }
    assert NEW_KEY not in rotating.log.read_text()


async def test_a_terminal_that_closes_ends_its_gateway(rotating: Rotating) -> None:
    """Ours: the signal is the one of a reload; a gateway without its terminal drains, and exits with 0 (SRV-3)."""
    rotating.process.send_signal(signal.SIGHUP)
    await until(lambda: bool(rotating.lines("configuration_reread")))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, rotating.terminal)  # closes it
    os.close(null)
    rotating.process.send_signal(signal.SIGHUP)

    assert await anyio.to_thread.run_sync(rotating.process.wait, 60) == 0
    assert rotating.lines("draining")
