"""Redis behind three Sentinels: the primary that they name is used, also after a fail-over."""

import signal
import subprocess
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import redis
from redis.asyncio import BlockingConnectionPool
from redis.asyncio.connection import SSLConnection

from gateway.domain.events import CatalogMoved, Event
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.embedded.binaries import redis_program
from gateway.errors import BrokenSetting, RedisUnavailable
from gateway.redis.diagnostics import examine_redis
from gateway.redis.event_bus import EventBus
from gateway.redis.servers import read_servers
from gateway.redis.sessions.stores import SessionStores, session_stores
from tests.deploy.sockets import free_port
from tests.integration.redis.conftest import ACME, SECRET, make_record
from tests.support.replicas import until

_PASSWORD = "password-of-the-tests"
_SENTINEL = """port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor main 127.0.0.1 {primary} 2
sentinel auth-pass main {password}
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
sentinel parallel-syncs main 2
"""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A primary and two replicas, three Sentinels, and a replica of the gateway."""

    ports: Sequence[int]
    sentinels: Sequence[int]
    servers: Sequence[subprocess.Popen[bytes]]
    url: str
    bus: EventBus
    stores: SessionStores

    def primary(self) -> int:
        """The port of the primary that the first Sentinel names."""
        with _commanding(f"redis://127.0.0.1:{self.sentinels[0]}") as command:
            return int(command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")[1])

    def replicas(self) -> int:
        """The number of replicas that follow the first primary."""
        with _commanding(f"redis://:{_PASSWORD}@127.0.0.1:{self.ports[0]}") as command:
            state: str = command("INFO", "replication").decode()
            return state.count("state=online")

    def are_agreed(self) -> bool:
        """True once the first Sentinel knows the other two and both replicas."""
        with _commanding(f"redis://127.0.0.1:{self.sentinels[0]}") as command:
            shown = command("SENTINEL", "MASTER", "main")
            facts = dict(zip(shown[::2], shown[1::2], strict=True))
            return (facts[b"num-other-sentinels"], facts[b"num-slaves"]) == (b"2", b"2")


@contextmanager
def _commanding(url: str) -> Generator[Callable[..., Any]]:
    make: Any = cast(Any, redis.Redis).from_url
    with make(url, protocol=2, socket_timeout=5.0) as client:
        client.response_callbacks.clear()  # replies as the server sends them
        yield client.execute_command


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncGenerator[Guarded]:
    """All of them run and know each other."""
    ports, sentinels = [free_port() for _ in range(3)], [free_port() for _ in range(3)]
    servers = [_start(tmp_path / str(port), port, None if port == ports[0] else ports[0]) for port in ports]
    watchers = [_watch(tmp_path / str(port), port, ports[0]) for port in sentinels]
    hosts = ",".join(f"127.0.0.1:{port}" for port in sentinels)
    url = f"redis+sentinel://:{_PASSWORD}@{hosts}/main/0"
    try:
        async with AsyncExitStack() as stack:
            await until(lambda: _answers(ports, sentinels))
            bus = await stack.enter_async_context(EventBus(url, secret=SECRET))
            tasks = await stack.enter_async_context(TaskSupervisor())
            started = Guarded(ports, sentinels, servers, url, bus, session_stores(bus, spawn=tasks.spawn, idle_s=60))
            await until(lambda: started.replicas() == 2 and started.are_agreed(), seconds=60)
            yield started
    finally:
        for process in (*servers, *watchers):
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


def _start(folder: Path, port: int, primary: int | None) -> subprocess.Popen[bytes]:
    folder.mkdir()
    following = [] if primary is None else ["--replicaof", "127.0.0.1", str(primary)]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--requirepass", _PASSWORD, "--masterauth", _PASSWORD]
    kept = ["--dir", str(folder), "--save", "", "--repl-diskless-sync-delay", "0"]
    return subprocess.Popen([redis_program(), *options, *kept, *following], stdout=subprocess.DEVNULL)


def _watch(folder: Path, port: int, primary: int) -> subprocess.Popen[bytes]:
    folder.mkdir()
    configuration = folder / "sentinel.conf"
    configuration.write_text(_SENTINEL.format(port=port, folder=folder, primary=primary, password=_PASSWORD))
    return subprocess.Popen([redis_program(), str(configuration), "--sentinel"], stdout=subprocess.DEVNULL)


def _answers(ports: Sequence[int], sentinels: Sequence[int]) -> bool:
    urls = [f"redis://:{_PASSWORD}@127.0.0.1:{port}" for port in ports]
    try:
        for url in (*urls, *(f"redis://127.0.0.1:{port}" for port in sentinels)):
            with _commanding(url) as command:
                command("PING")
    except redis.RedisError:
        return False
    return True


async def _works(guarded: Guarded) -> bool:
    try:
        await guarded.stores.sessions.create(make_record(), cap=100)
    except RedisUnavailable:
        return False
    return True


async def _until_it_works(guarded: Guarded) -> None:
    with anyio.fail_after(60):
        while not await _works(guarded):  # noqa: ASYNC110  # the state is in other processes
            await anyio.sleep(0.1)


@pytest.mark.parametrize("how", ["killed", "replaced", "paused"])
async def test_the_new_primary_is_used_after_a_fail_over(guarded: Guarded, how: str) -> None:
    """Ours: a primary that is killed, replaced by an operator or cut off costs seconds, and no replicated session."""
    kept = make_record()
    await guarded.stores.sessions.create(kept, cap=100)
    events: list[Event] = []
    guarded.bus.subscribe(events.append)
    with _commanding(f"redis://:{_PASSWORD}@127.0.0.1:{guarded.ports[0]}") as command:
        assert command("WAIT", 2, 5000) == 2
    if how == "killed":
        guarded.servers[0].kill()
    elif how == "paused":
        guarded.servers[0].send_signal(signal.SIGSTOP)
    else:
        with _commanding(f"redis://127.0.0.1:{guarded.sentinels[0]}") as command:
            command("SENTINEL", "FAILOVER", "main")
    await until(lambda: guarded.primary() != guarded.ports[0], seconds=60)
    await _until_it_works(guarded)

    assert await guarded.stores.sessions.find(ACME, kept.id) is not None
    with anyio.fail_after(60):
        while not events:
            await guarded.bus.publish(CatalogMoved(tenant=ACME, revision=7))
            await anyio.sleep(0.1)
    assert (await examine_redis(guarded.url)).is_replica is False


def test_a_url_of_sentinels_names_hosts_service_and_logins() -> None:
    """Ours: each part of the URL is a parameter of one of both kinds of connections."""
    servers = read_servers(
        "rediss+sentinel://app:secret%2F@one,two:26380,[::1]:26381/main/3?sentinel_password=other&ssl_ca_certs=%2Fca"
    )
    assert servers.sentinels == (("one", 26379), ("two", 26380), ("::1", 26381))
    assert servers.service == "main"
    expected = {"username": "app", "password": "secret/", "db": 3, "ssl_ca_certs": "/ca"}
    assert {name: servers.options[name] for name in expected} == expected
    assert servers.options["connection_class"] is SSLConnection
    assert servers.login == {"password": "other", "ssl": True, "ssl_ca_certs": "/ca"}
    assert "secret" not in repr(servers)
    assert "other" not in repr(servers)
    pool = servers.pool(BlockingConnectionPool, command_s=1.0, connect_s=1.0, max_connections=1)
    assert issubclass(pool.pool.connection_class, SSLConnection)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis+sentinel://one:26379", "needs the name of the service"),
        ("redis+sentinel://one:26379/", "needs the name of the service"),
        ("redis+sentinel://one:x/main", "each Sentinel needs a host"),
        ("redis+sentinel://,two/main", "each Sentinel needs a host"),
        ("http://one", "Redis URL must specify"),
    ],
)
def test_a_wrong_url_is_refused_with_its_setting(url: str, reason: str) -> None:
    """Ours: the message names the setting and the missing part."""
    with pytest.raises(BrokenSetting, match=f"GATEWAY_REDIS_URL: .*{reason}"):
        read_servers(url)
