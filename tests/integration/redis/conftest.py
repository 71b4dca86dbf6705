"""A Redis of a test's own, to be killed, started again and stopped in mid-sentence."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import redis.asyncio

from gateway.domain.events import Event, SessionEnded, TenantRemoved
from gateway.domain.fairness.task_supervisor import TaskSupervisor
from gateway.domain.identifiers import TenantId
from gateway.domain.sessions import SessionRecord
from gateway.embedded.binaries import redis_program
from gateway.redis.event_bus import EventBus
from gateway.redis.heartbeat import ReplicaHeartbeat
from gateway.redis.sessions.keys import SessionKeys
from gateway.redis.sessions.records import Sessions, new_session_id
from gateway.redis.sessions.stores import SessionStores, session_stores
from tests.support.replicas import commanding, until

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")
SECRET = b"the secret of all replicas"


class OwnRedis:
    """One redis-server behind a unix socket."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._running: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    async def start(self) -> None:
        """Start it and wait until it answers."""
        self._launch()
        await until(self._answers)

    def _launch(self, *options: str) -> None:
        self._running = subprocess.Popen(
            [
                redis_program(),
                "--port",
                "0",
                "--unixsocket",
                self._socket,
                "--save",
                "",
                "--dir",
                self._folder,
                *options,
            ],
            stdout=subprocess.DEVNULL,
        )

    async def restart_slowly(self) -> None:
        """Keep 40 MB, and start it again so that it reads them for seconds; it answers after every two of them."""
        with commanding(self.url) as command:
            command("CONFIG", "SET", "rdbcompression", "no")
            command("EVAL", "for n = 1, 4000 do redis.call('SET', 'kept:' .. n, string.rep('x', 10000)) end", 0)
            command("SAVE")
        self.kill()
        self._launch("--key-load-delay", "1000")
        await until(lambda: self._states(b"-LOADING"))

    def kill(self) -> None:
        """End it at once; whatever it held is gone."""
        if self._running is not None:
            self._running.send_signal(signal.SIGCONT)
            self._running.kill()
            self._running.wait()
            self._running = None

    def freeze(self) -> None:
        """Let it hold its connections and not respond."""
        assert self._running is not None
        self._running.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._running is not None
        self._running.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        return self._states(b"+PONG")

    def _states(self, answer: bytes) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(os.fspath(self._socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(len(answer)) == answer
        return False


@pytest.fixture
def own_redis() -> Iterator[OwnRedis]:
    """Not started yet."""
    with tempfile.TemporaryDirectory(prefix="gwr-") as folder:
        server = OwnRedis(Path(folder))
        yield server
        server.kill()


@pytest.fixture
async def raw(redis_url: str) -> AsyncGenerator[Any]:
    """Redis as another client in the network sees it."""
    client = cast(Any, redis.asyncio.Redis).from_url(redis_url, protocol=2)
    yield client
    await client.aclose()


@dataclass(frozen=True, slots=True)
class Two:
    """Two replicas and one session that both know."""

    here: SessionStores
    there: SessionStores
    record: SessionRecord

    @property
    def keys(self) -> SessionKeys:
        """Names of its parts."""
        return self.here.sessions.keys(self.record.tenant, self.record.id)


def make_record(tenant: TenantId = ACME, subject: str = "somebody") -> SessionRecord:
    """A session without an owner."""
    return SessionRecord(
        id=new_session_id(),
        tenant=tenant,
        subject=subject,
        profile="default",
        protocol_version="2025-11-25",
        client={"capabilities": {}},
    )


def follow(bus: EventBus, sessions: Sessions) -> None:
    """Deliver ends and gaps to the sessions, as the event router does."""

    def deliver(event: Event) -> None:
        match event:
            case SessionEnded(tenant=tenant, session=session):
                sessions.forget(tenant, session)
            case TenantRemoved(tenant=tenant):
                sessions.forget_tenant(tenant)
            case _:
                pass

    bus.subscribe(deliver)
    bus.subscribe_gaps(sessions.forget_all)


@pytest.fixture
async def two(redis_url: str) -> AsyncGenerator[Two]:
    """A session made at one of two replicas."""
    async with (
        EventBus(redis_url, secret=SECRET) as here,
        EventBus(redis_url, secret=SECRET) as there,
        ReplicaHeartbeat(here),
        TaskSupervisor() as tasks,
    ):
        stores, record = session_stores(here, spawn=tasks.spawn, idle_s=60), make_record()
        others = session_stores(there, spawn=tasks.spawn, idle_s=60)
        follow(here, stores.sessions)
        follow(there, others.sessions)
        await stores.sessions.create(record, cap=10)
        yield Two(stores, others, record)
