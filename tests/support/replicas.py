"""Two real gateway processes over the test's PostgreSQL and Redis, and clients that reach either of them in turn.

Each replica logs in to Redis as a user of its own, so that a test can take one of them its voice without the other
noticing; each process writes its log as JSON lines into a file of its own.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import httpx
import httpx2
import redis
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from gateway.app.readiness import Readiness
from tests.deploy.sockets import free_port
from tests.support.certificates import authorities
from tests.support.forks import Forked
from tests.support.gateway import OPEN_POLICY, OPERATOR_KEY, SECRET_KEY, RunningGateway
from tests.support.serving import NO_TLS, clients_of

NAMES = ("a", "b")
Mode = Literal["auto", "legacy", "2026-07-28"]

_STARTING_S = 180.0
_STOPPING_S = 15.0
_LONGEST_PAUSE_S = 0.15
_SHOWN_LINES = 40
_REDIS_PASSWORD = "of-a-replica"
_LIVES = "*:replica:*"
_USERS = itertools.count(1)
"""Replicas of several tests may be up at once, and each set forgets its users when it ends."""


class Replica:
    """One gateway process; killed or stopped it can be started again, on another port."""

    def __init__(
        self, name: str, folder: Path, environment: dict[str, str], redis_url: str, *, python: str = sys.executable
    ) -> None:
        self.name = name
        self._python = python
        self.log = folder / f"replica-{name}.jsonl"
        self.is_up = False
        self.redis_user = f"replica-{name}-{next(_USERS)}"
        self._environment = {
            **environment,
            "GATEWAY_REDIS_URL": as_redis_user(redis_url, self.redis_user),
        }
        self._redis_url = redis_url
        self._folder = folder
        self._child: subprocess.Popen[bytes] | Forked | None = None
        self._clients = AsyncExitStack()
        self._gateway: RunningGateway | None = None

    @property
    def gateway(self) -> RunningGateway:
        """This replica alone: its URL, its admin API, plain HTTP to it."""
        assert self._gateway is not None, f"replica {self.name} was not started"
        return self._gateway

    @property
    def pid(self) -> int:
        """The process."""
        return self._running.pid

    async def start(self) -> None:
        """Start the process and wait until it serves."""
        await self._clients.aclose()
        # with a public URL the program announces that one, so the port has to be known before
        port = free_port() if "GATEWAY_PUBLIC_URL" in self._environment else 0
        arguments = ["serve", "--json", "--port", str(port), "--data-dir", str(self._folder / f"replica-{self.name}")]
        self._child = await anyio.to_thread.run_sync(self._launch, arguments)
        announced = await self._announced(self._child)
        url = f"http://127.0.0.1:{port}" if port else announced
        admin, http = await self._clients.enter_async_context(clients_of(url, OPERATOR_KEY))
        self._gateway = RunningGateway(url, admin, http, Readiness())  # the real one is in the other process
        self.is_up = True

    def kill(self) -> None:
        """End it as a power cut does."""
        self.is_up = False
        self._running.kill()
        self._running.wait()

    async def heal(self) -> None:
        """Bring it back from whatever a test did to it."""
        if self._running.poll() is not None:
            await self.start()
        elif not self.is_up:
            self.resume()

    async def stop(self) -> int:
        """Send it SIGTERM, wait, and return the exit code; a process that does not end in time is killed."""
        self.is_up = False
        child = self._running
        child.send_signal(signal.SIGCONT)
        child.terminate()
        with anyio.move_on_after(_STOPPING_S):
            return await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
        child.kill()
        return child.wait()

    def pause(self) -> None:
        """Let it keep its sockets and do nothing."""
        self.is_up = False
        self._running.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._running.send_signal(signal.SIGCONT)
        self.is_up = True

    def advance(self, seconds: float) -> None:
        """Begin to move its clock ahead, which takes a twentieth of the time."""
        self._clock.advance(seconds)

    def hurrying(self) -> AbstractContextManager[None]:
        """While the block runs, its clock runs ahead, some twenty seconds in one."""
        return self._clock.hurrying()

    @contextmanager
    def muted(self) -> Generator[None]:
        """While the block runs, its published events reach no replica, itself included."""
        with self._redis() as client:
            client("ACL", "SETUSER", self.redis_user, "-publish")
        try:
            yield
        finally:
            with self._redis() as client:
                client("ACL", "SETUSER", self.redis_user, "+publish")

    def drop_subscription(self) -> None:
        """Cut the connection on which it receives events; those until it is restored are lost."""
        with self._redis() as client:
            client("CLIENT", "KILL", "USER", self.redis_user, "TYPE", "pubsub")

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Its log lines of this event."""
        found = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line.get("event") == event]

    async def close(self) -> None:
        """End it, whatever its state, and show the end of its log."""
        await self._clients.aclose()
        if self._child is not None and self._child.poll() is None:
            await self.stop()
        self.show_log()

    def show_log(self, start: int = 0) -> None:
        """Print the end of its log, of what was written after that many bytes; pytest shows it if the test failed."""
        if self.log.exists():
            written = self.log.read_bytes()[start:].decode()
            print(f"--- replica {self.name}", *written.splitlines()[-_SHOWN_LINES:], sep="\n")

    @property
    def _running(self) -> subprocess.Popen[bytes] | Forked:
        assert self._child is not None, f"replica {self.name} was not started"
        return self._child

    @property
    def _clock(self) -> Forked:
        assert isinstance(self._child, Forked), "the clock of another release cannot be moved"
        return self._child

    def _launch(self, arguments: Sequence[str]) -> subprocess.Popen[bytes] | Forked:
        """Start the program; another release is not what is forked here."""
        if self._python == sys.executable:
            return Forked(arguments, self._environment, errors=self.log)
        command = [self._python, "-m", "gateway", *arguments]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, stderr=log)

    async def _announced(self, child: subprocess.Popen[bytes] | Forked) -> str:
        """The URL in what `gateway serve --json` prints once it serves."""
        assert child.stdout is not None
        with child.stdout, anyio.move_on_after(_STARTING_S):
            reported = await anyio.to_thread.run_sync(_read_object, child.stdout, abandon_on_cancel=True)
            if reported:
                url: str = json.loads(reported)["url"]
                return url
        child.kill()
        child.wait()
        raise AssertionError(f"replica {self.name} did not start: {self.log.read_text()[-2000:]}")

    @contextmanager
    def _redis(self) -> Generator[Callable[..., object]]:
        with commanding(self._redis_url) as command:
            yield command


@dataclass(slots=True)
class Replicas:
    """The replicas `a` and `b`, and a way to both."""

    all: tuple[Replica, ...]
    turns: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Replica of each method, in the order of the requests of all clients made here."""

    @property
    def a(self) -> Replica:
        """The first replica."""
        return self.all[0]

    @property
    def b(self) -> Replica:
        """The second replica."""
        return self.all[1]

    async def heal(self) -> None:
        """Bring both back from whatever a test did to them."""
        await _at_once([replica.heal for replica in self.all])
        self.turns.clear()

    @contextmanager
    def logs_shown(self) -> Generator[None]:
        """After the block, show what both logged in it."""
        starts = [replica.log.stat().st_size for replica in self.all]
        try:
            yield
        finally:
            for replica, start in zip(self.all, starts, strict=True):
                replica.show_log(start)

    def admin(self, replica: Replica) -> httpx.AsyncClient:
        """The operator at this replica's admin API."""
        return replica.gateway.admin

    def http(self, key: str, *, to: Replica | None = None) -> httpx2.AsyncClient:
        """A plain client with this key: each request goes to the next replica that is up, or always to one."""
        transport = RoundRobin((to,) if to else self.all, self.turns)
        return httpx2.AsyncClient(
            transport=transport, base_url=URL, headers={"authorization": f"Bearer {key}"}, timeout=30
        )

    @asynccontextmanager
    async def client(
        self, slug: str, key: str, mode: Mode = "auto", *, to: Replica | None = None, **more: Any
    ) -> AsyncGenerator[Client]:
        """The SDK's own client, each HTTP request at the next replica that is up, or always at one."""
        async with (
            self.http(key, to=to) as http,
            Client(streamable_http_client(f"{URL}/t/{slug}/mcp", http_client=http), mode=mode, **more) as client,
        ):
            yield client


URL = "http://127.0.0.1:1"
"""Authority that clients use; the transport puts a replica's port in."""


class RoundRobin(httpx2.AsyncHTTPTransport):
    """A load balancer in the client: every request goes to the next of these replicas that is up."""

    def __init__(self, replicas: Sequence[Replica], turns: list[tuple[str, str]]) -> None:
        super().__init__(verify=NO_TLS, trust_env=False)
        self._replicas = replicas
        self._numbers = itertools.count()
        self._turns = turns

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send it to the next replica in turn."""
        up = [replica for replica in self._replicas if replica.is_up] or list(self._replicas)
        replica = up[next(self._numbers) % len(up)]
        self._turns.append((replica.name, request.method))
        request.url = request.url.copy_with(port=urlsplit(replica.gateway.url).port)
        return await super().handle_async_request(request)


@asynccontextmanager
async def running_replicas(
    database_url: str, redis_url: str, folder: Path, *, egress_allow: Sequence[str] = (), **variables: str
) -> AsyncGenerator[Replicas]:
    """Both replicas, started at the same time; variables are `GATEWAY_*` names in small letters without the prefix."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")} | {
        "SSL_CERT_FILE": authorities(),
        "GATEWAY_DATABASE_URL": database_url,
        "GATEWAY_SECRET_KEYS": SECRET_KEY,
        "GATEWAY_OPERATOR_KEY": OPERATOR_KEY,
        "GATEWAY_EGRESS_ALLOW": ",".join(egress_allow),
        "GATEWAY_LOG_FORMAT": "json",
        "GATEWAY_DRAIN_S": "2",
        "GATEWAY_ADMIN_RATE": "1000000",
        "GATEWAY_LIST_PAGE_ITEMS": "100",
        "GATEWAY_TENANT_POLICY": ",".join(OPEN_POLICY),
        "GATEWAY_AUTH_FAILURE_RATE": "1000000",
        **{f"GATEWAY_{name.upper()}": value for name, value in variables.items()},
    }
    replicas = Replicas(tuple(Replica(name, folder, environment, redis_url) for name in NAMES))
    with redis_users(redis_url, [replica.redis_user for replica in replicas.all]):
        try:
            await _at_once([replica.start for replica in replicas.all])
            yield replicas
        finally:
            with anyio.CancelScope(shield=True):
                await _at_once([replica.close for replica in replicas.all])


async def until(claim: Callable[[], Awaitable[bool] | bool], *, seconds: float = 10, pause: float = 0.02) -> None:
    """Wait for an action of another process without an event; the longer it takes, the longer is each pause."""
    with anyio.fail_after(seconds):
        while True:
            found = claim()
            if found if isinstance(found, bool) else await found:
                return
            await anyio.sleep(pause)
            pause = max(pause, min(1.3 * pause, _LONGEST_PAUSE_S))


async def tool_names(client: Client) -> list[str]:
    """Every tool that a client is shown, page by page."""
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


@contextmanager
def commanding(redis_url: str) -> Generator[Callable[..., object]]:
    """Redis as its operator commands it."""
    parts = urlsplit(redis_url)
    number = int(parse_qs(parts.query).get("db", ["0"])[0])
    with redis.Redis(unix_socket_path=parts.path, db=number, driver_info=None) as client:
        yield cast(Callable[..., object], cast(Any, client).execute_command)


async def forget_killed(redis_url: str) -> None:
    """Let Redis forget the replicas that have no connection to it any more, as it does when their time is over."""
    with commanding(redis_url) as command:

        async def has_forgotten() -> bool:
            connected = {name.rpartition(b":")[2] for name in cast(list[bytes], command("PUBSUB", "CHANNELS", _LIVES))}
            known = cast(list[bytes], command("KEYS", f"{_LIVES}:alive"))
            killed = [name for name in known if name.split(b":")[-2] not in connected]
            return bool(killed and command("DEL", *killed))

        await until(has_forgotten)


def grant_redis(redis_url: str, names: Sequence[str]) -> None:
    """Let replicas log in to Redis; it forgets who may when it is restarted."""
    with commanding(redis_url) as command:
        for name in names:
            command("ACL", "SETUSER", name, "reset", "on", f">{_REDIS_PASSWORD}", "~*", "&*", "+@all")


def as_redis_user(redis_url: str, name: str) -> str:
    """The URL under which one of those logs in."""
    return redis_url.replace("unix://", f"unix://{name}:{_REDIS_PASSWORD}@", 1)


@contextmanager
def redis_users(redis_url: str, names: Sequence[str]) -> Generator[None]:
    """They may log in while the block runs."""
    grant_redis(redis_url, names)
    try:
        yield
    finally:
        with commanding(redis_url) as command:
            command("ACL", "DELUSER", *names)


def _read_object(lines: IO[bytes]) -> bytes:
    """A JSON object on one line or over several; less of it when the writer ends."""
    reported = b""
    for line in lines:
        reported += line
        if line.startswith(b"}") or (reported == line and line.endswith(b"}\n")):
            break
    return reported


async def _at_once(tasks: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(task)
