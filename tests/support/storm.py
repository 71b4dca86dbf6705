"""A storm on one gateway: many tenants ask at once and most of them go away in the middle.

Every answer names the caller and the request for which it was made. A call is left at a random moment in one of two
ways: the client's socket is closed somewhere in the request, while waiting, or somewhere in the answer; or the task
that serves it is cancelled, wherever it waits: for PostgreSQL, for Redis, for the upstream. In between, honest clients
check that each gets its own whole answer, and no other.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import struct
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, cast
from urllib.parse import urlsplit

import anyio
import httpx
from redis.asyncio import BlockingConnectionPool, ConnectionPool

from gateway.domain.identifiers import TenantId
from gateway.redis.limits.call_limiter import CallLimiter
from gateway.registry.connections.connections import Connections
from gateway.store.database.connection import connect_owner
from gateway.web.edge import Edge
from tests.support.gateway import ACCEPT, META, MODERN, RunningGateway, running_gateway
from tests.support.live_objects import born_since, living
from tests.support.replicas import as_redis_user, commanding, redis_users
from tests.support.servers import TestDatabase
from tests.support.serving import http_client

SLUGS = ("acme", "globex", "initech", "umbrella", "hooli")
PARTING = b'"code":"call.replica_lost"'
"""Response to the client of a session when the task that answers it is ended from outside."""

PATIENCES_S = (0.003, 0.02, 0.1)
"""The longest that an impatient client waits: less than a call takes, about as long, and more."""
_PAUSE_S = 0.008
_REDIS_USER = "storm"
"""As whom this gateway logs in to Redis, where others of the same test run may be too."""

WIDE = {"calls_per_second": 1_000_000, "burst": 1_000_000, "concurrency": 10_000, "sessions": 1_000_000}
_POOLS = (ConnectionPool, BlockingConnectionPool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Storming:
    """A tenant that asks, and the word that must never be seen by another."""

    slug: str
    id: TenantId
    key: str
    key_id: str
    admin_key: str
    session: str

    @property
    def canary(self) -> str:
        """In everything that is this tenant's."""
        return f"canary-of-{self.slug}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request, and the words that its whole answer has: the id that only it knows among them."""

    tenant: Storming
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    expected: tuple[str, ...]

    def wire(self) -> bytes:
        """The request as bytes."""
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in self.headers.items())]
        lines += ["host: 127.0.0.1", f"content-length: {len(self.body)}", "", ""]
        return "\r\n".join(lines).encode() + self.body


@dataclass(slots=True)
class Storm:
    """A gateway, its tenants, and what became of what they asked."""

    gateway: RunningGateway
    app: Edge
    connections: Connections
    buckets: CallLimiter
    pools: tuple[ConnectionPool, ...]
    tenants: tuple[Storming, ...]
    superuser_url: str
    redis_url: str
    seen: Counter[str] = field(default_factory=Counter[str])
    mixed: list[str] = field(default_factory=list[str])
    """Every answer, whole or in part, that contains data of another caller."""
    broken: list[str] = field(default_factory=list[str])
    """Every answer to an honest client that was not the one it asked for."""

    def check(self, ask: Ask, answer: bytes) -> None:
        """Look for anything that is another tenant's."""
        for other in self.tenants:
            if other is not ask.tenant and other.canary.encode() in answer:
                self.mixed.append(f"{ask.tenant.slug} {ask.path} saw {other.slug}: {answer[:300]!r}")

    def check_whole(self, ask: Ask, status: int, answer: bytes) -> None:
        """Also look whether it is this request's."""
        self.check(ask, answer)
        text = answer.decode()
        if status >= httpx.codes.BAD_REQUEST or any(word not in text for word in ask.expected):
            self.broken.append(f"{ask.path} wanted {ask.expected}, got {status} {text[:300]}")

    async def rest(self) -> "Rest":
        """Resources in use now."""
        postgres, busy = await _postgres_connections(self.superuser_url)
        with commanding(self.redis_url) as command:
            clients = cast(bytes, command("CLIENT", "LIST")).count(f" user={_REDIS_USER} ".encode())
        idle, in_use = _pooled(self.pools)
        return Rest(
            postgres=postgres,
            postgres_busy=busy,
            redis=max(0, clients - idle - in_use),  # how many a pool keeps is the pool's business
            redis_busy=in_use,
            files=sum(1 for _ in Path("/dev/fd").iterdir()),
            tasks=len(asyncio.all_tasks()),
            connections=self.connections.open_count + self.connections.subscriber_count,
            running=sum(self.buckets.running(tenant.id) for tenant in self.tenants),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Number of each resource in use."""

    postgres: int
    postgres_busy: int
    redis: int
    """Connections that no pool knows any more."""
    redis_busy: int
    """Connections that a pool has given away: the one that is listened to, and those in use."""
    files: int
    tasks: int
    connections: int
    running: int

    def is_within(self, other: "Rest") -> bool:
        """True if no resource has a higher use than there."""
        return all(getattr(self, name) <= getattr(other, name) for name in self.__slots__)


def _pooled(pools: Sequence[ConnectionPool]) -> tuple[int, int]:
    """Number of connections to Redis that the pools keep, and number of those in use."""
    counts = [[count for count, _ in cast(Any, pool).get_connection_count()] for pool in pools]
    return sum(idle for idle, _ in counts), sum(in_use for _, in_use in counts)


async def _postgres_connections(superuser_url: str) -> tuple[int, int]:
    """Number of connections of the gateway to the database, and number of those inside a transaction."""
    connection = await connect_owner(superuser_url)
    try:
        states = await connection.fetch(
            "select state from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()
    return len(states), sum(row["state"] != "idle" for row in states)


class Asks:
    """Makes requests, each with an id of its own."""

    def __init__(self, tenants: Sequence[Storming], random: Random) -> None:
        self._tenants = tenants
        self._random = random
        self._number = random.randrange(1 << 40) << 20
        self._kinds: tuple[Callable[[Storming, int], Ask], ...] = (
            self._current,
            self._current,
            self._sending,
            self._handshake,
            self._handshake,
            self._listing,
            self._initializing,
            self._reading,
            self._changing,
            self._touching,
        )

    def next(self) -> Ask:
        """Something that some tenant wants."""
        return self.of(self._random.choice(self._kinds))

    def admin(self) -> Ask:
        """Something that some tenant wants of the admin API."""
        return self.of(self._random.choice((self._reading, self._reading, self._adding, self._touching)))

    def of(self, kind: Callable[[Storming, int], Ask]) -> Ask:
        """One request of a kind, of any tenant."""
        self._number += 1
        return kind(self._random.choice(self._tenants), self._number)

    def _current(self, tenant: Storming, number: int) -> Ask:
        params = {"name": "echo", "arguments": {"id": str(number)}, "_meta": self._way()}
        return _modern(tenant, number, "tools/call", params)

    def _sending(self, tenant: Storming, number: int) -> Ask:
        return _modern(tenant, number, "tools/call", {"name": "send", "arguments": {"body": {"id": str(number)}}})

    def _listing(self, tenant: Storming, number: int) -> Ask:
        ask = _modern(tenant, number, "tools/list", {})
        return replace(ask, expected=(tenant.canary, f'"id":{number}'))

    def _handshake(self, tenant: Storming, number: int) -> Ask:
        headers = {"mcp-session-id": tenant.session, "mcp-protocol-version": "2025-11-25"}
        params = {"name": "echo", "arguments": {"id": str(number)}, "_meta": self._way()}
        return _rpc(tenant, number, "tools/call", params, headers)

    def _initializing(self, tenant: Storming, number: int) -> Ask:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        return replace(_rpc(tenant, number, "initialize", params, {}), expected=(f'"id":{number}', "2025-11-25"))

    def _reading(self, tenant: Storming, _: int) -> Ask:
        return _admin(tenant, "GET", "/sources", None, expected=(tenant.canary,))

    def _changing(self, tenant: Storming, number: int) -> Ask:
        primitives = 100_000 + number % 900_000
        body = {"limits": {**WIDE, "primitives": primitives}}
        return _admin(tenant, "PATCH", "/policy", body, expected=(f'"primitives":{primitives}',))

    def _touching(self, tenant: Storming, number: int) -> Ask:
        name = f"{tenant.canary}-{number}"
        return _admin(tenant, "PATCH", f"/keys/{tenant.key_id}", {"name": name}, expected=(name,))

    def _way(self) -> dict[str, object]:
        """Form of a call that is answered at once, or that the SDK judges."""
        return {"io.modelcontextprotocol/odd": 1} if self._random.random() < 0.5 else {}

    def _adding(self, tenant: Storming, number: int) -> Ask:
        name = f"{tenant.canary}-{number}"
        return _admin(tenant, "POST", "/keys", {"name": name, "scopes": ["mcp"]}, expected=(name,))


def _modern(tenant: Storming, number: int, method: str, params: dict[str, Any]) -> Ask:
    named = {"mcp-name": params["name"]} if "name" in params else {}
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method, **named}
    return _rpc(tenant, number, method, {**params, "_meta": {**META, **params.get("_meta", {})}}, headers)


def _rpc(tenant: Storming, number: int, method: str, params: dict[str, Any], headers: Mapping[str, str]) -> Ask:
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return Ask(
        tenant=tenant,
        method="POST",
        path=f"/t/{tenant.slug}/mcp",
        headers={
            "authorization": f"Bearer {tenant.key}",
            "content-type": "application/json",
            "accept": ACCEPT,
            **headers,
        },
        body=json.dumps(body).encode(),
        expected=(f'"id":{number}', f'"echo":"{tenant.canary}/{number}"'),
    )


def _admin(tenant: Storming, method: str, path: str, body: object, *, expected: tuple[str, ...]) -> Ask:
    return Ask(
        tenant=tenant,
        method=method,
        path=f"/admin/v1/tenants/{tenant.slug}{path}",
        headers={"authorization": f"Bearer {tenant.admin_key}", "content-type": "application/json"},
        body=b"" if body is None else json.dumps(body).encode(),
        expected=expected,
    )


async def patient(storm: Storm, ask: Ask, http: httpx.AsyncClient) -> None:
    """An honest client: waits, and wants the whole of its own answer."""
    answer = await http.request(ask.method, ask.path, headers=dict(ask.headers), content=ask.body)
    storm.seen["answered"] += 1
    storm.check_whole(ask, answer.status_code, answer.content)


async def hang_up(storm: Storm, ask: Ask, random: Random) -> None:
    """A client that closes its socket: in the request, while it waits, or in the answer; sometimes with a reset."""
    url = urlsplit(storm.gateway.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    wire = ask.wire()
    received = b""
    try:
        with contextlib.suppress(ConnectionError):
            if random.random() < 0.3:
                writer.write(wire[: random.randrange(len(wire))])
                await writer.drain()
                storm.seen["left in the request"] += 1
            else:
                writer.write(wire)
                with anyio.move_on_after(random.uniform(0, random.choice(PATIENCES_S))):
                    received = await reader.read(random.randrange(1, 2000))
                storm.seen["left in the answer" if received else "left while waiting"] += 1
        if random.random() < 0.5:
            connected: socket.socket = writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    storm.check(ask, received)


async def cancel(storm: Storm, ask: Ask, random: Random) -> None:
    """A task that is cancelled while it serves, wherever it waits just then."""
    answer = _Answer()
    with anyio.CancelScope() as scope:
        patience_s = random.uniform(0, random.choice(PATIENCES_S))
        asyncio.get_running_loop().call_later(patience_s, scope.cancel)
        await storm.app(_scope(ask), _Body(ask.body), answer)
    if answer.is_whole and PARTING in answer.body:
        storm.seen["received its cancellation"] += 1
        storm.check(ask, answer.body)
    elif answer.is_whole:
        storm.seen["faster than the cancellation"] += 1
        storm.check_whole(ask, answer.status, answer.body)
    else:
        storm.seen["cancelled"] += 1
        storm.check(ask, answer.body)


class _Body:
    """ASGI input of the application: the body, and then nothing."""

    def __init__(self, body: bytes) -> None:
        self._body: bytes | None = body

    async def __call__(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self._body is None:
            await asyncio.Event().wait()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer:
    """ASGI output of the application."""

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.is_whole = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.body += message.get("body", b"")
            self.is_whole = not message.get("more_body", False)


def _scope(ask: Ask) -> dict[str, Any]:
    headers = {"host": "127.0.0.1", **ask.headers, "content-length": str(len(ask.body))}
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": ask.method,
        "scheme": "http",
        "path": ask.path,
        "raw_path": ask.path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
        "extensions": {},
    }


@asynccontextmanager
async def storming_gateway(database: TestDatabase, redis_url: str, seed: int) -> AsyncGenerator[Storm]:
    """A gateway with its tenants and an upstream that echoes, for as long as the block runs."""
    before = living((Edge, Connections, CallLimiter, *_POOLS))
    own_redis = as_redis_user(redis_url, _REDIS_USER)
    with redis_users(redis_url, [_REDIS_USER]):
        async with (
            echoing_upstream(Random(seed)) as upstream,
            running_gateway(
                database.app_url,
                own_redis,
                egress_allow=[upstream.removeprefix("http://")],
                log_level="error",
                ceilings=tuple(f"{limit}={value}" for limit, value in {**WIDE, "primitives": 1_000_000}.items()),
            ) as gateway,
        ):
            made = born_since(before)
            (app,), (connections,), (buckets,) = (made[kind] for kind in (Edge, Connections, CallLimiter))
            yield Storm(
                gateway=gateway,
                app=app,
                connections=connections,
                buckets=buckets,
                pools=tuple[ConnectionPool, ...](pool for kind in _POOLS for pool in made[kind]),
                tenants=tuple([await _tenant(gateway, slug, upstream) for slug in SLUGS]),
                superuser_url=database.superuser_url,
                redis_url=redis_url,
            )


async def _tenant(gateway: RunningGateway, slug: str, upstream: str) -> Storming:
    await gateway.create_tenant(slug)
    found = (await gateway.admin.get(f"/tenants/{slug}")).json()
    (await gateway.admin.patch(f"/tenants/{slug}/policy", json={"limits": WIDE})).raise_for_status()
    canary = f"canary-of-{slug}"
    await gateway.import_document(slug, _document(upstream, canary), name=canary)
    key = await gateway.create_key(slug)
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opened = await gateway.http.post(
        f"/t/{slug}/mcp",
        json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params},
        headers={"authorization": f"Bearer {key}", "accept": ACCEPT},
    )
    return Storming(
        slug=slug,
        id=TenantId(found["id"]),
        key=key,
        key_id=f"key_{key.split('_')[2]}",
        admin_key=await gateway.create_key(slug, "admin", "mcp"),
        session=opened.headers["mcp-session-id"],
    )


def _document(upstream: str, canary: str) -> dict[str, Any]:
    answer = {"200": {"description": "ok"}}
    identity = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    body = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": canary, "version": "1"},
        "servers": [{"url": f"{upstream}/{canary}"}],
        "paths": {
            "/{id}": {"get": {"operationId": "echo", "summary": canary, "parameters": [identity], "responses": answer}},
            "/": {"post": {"operationId": "send", "summary": canary, "requestBody": body, "responses": answer}},
        },
    }


@asynccontextmanager
async def echoing_upstream(random: Random) -> AsyncGenerator[str]:
    """An upstream that answers `/{canary}/{id}` with both, slowly and in pieces, on kept connections."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await _echo(reader, writer, random)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, random: Random) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    _, target, _ = head[0].split(" ", 2)
    lengths = [int(line.partition(":")[2]) for line in head if line.lower().startswith("content-length:")]
    body = await reader.readexactly(lengths[0] if lengths else 0)
    identity = target[1:] if not body else f"{target[1:].rstrip('/')}/{json.loads(body)['id']}"
    padding = "x" * random.choice((0, 0, 100, 30_000))
    answer = json.dumps({"echo": identity, "padding": padding}).encode()
    await asyncio.sleep(random.choice((0, 0, random.uniform(0, _PAUSE_S))))
    start = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n".encode()
    cut = random.randrange(len(answer))
    for piece in (start, b"\r\n", answer[:cut], answer[cut:]):
        if writer.is_closing():
            raise ConnectionError
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(random.choice((0, random.uniform(0, _PAUSE_S / 2))))


async def rage(storm: Storm, *, seed: int, calls: int, clients: int, make: Callable[[Asks], Ask]) -> None:
    """Let this many clients at once ask this often, most of them impatient."""
    counter = itertools.count()

    async def ask_on(number: int) -> None:
        random = Random(seed * 1000 + number)
        asks = Asks(storm.tenants, random)
        async with http_client(base_url=storm.gateway.url, timeout=60) as http:
            while next(counter) < calls:
                ask, way = make(asks), random.random()
                if way < 0.2:
                    await patient(storm, ask, http)
                elif way < 0.6:
                    await hang_up(storm, ask, random)
                else:
                    await cancel(storm, ask, random)

    async with anyio.create_task_group() as group:
        for number in range(clients):
            group.start_soon(ask_on, number)


async def all_answered(storm: Storm, *, seed: int, clients: int) -> None:
    """Let this many clients at once ask a few times, all of them patient: every pool is as large as it gets."""

    async def ask_on(number: int) -> None:
        asks = Asks(storm.tenants, Random(seed * 1000 + number))
        async with http_client(base_url=storm.gateway.url, timeout=60) as http:
            for _ in range(4):
                await patient(storm, asks.next(), http)

    async with anyio.create_task_group() as group:
        for number in range(clients):
            group.start_soon(ask_on, number)


async def settle(storm: Storm, baseline: Rest, *, seconds: float = 30) -> Rest:
    """Wait until no more is in use than there was; the answer is what is in use then, or when time is up."""
    rest = await storm.rest()
    with anyio.move_on_after(seconds):
        while not rest.is_within(baseline):
            await anyio.sleep(0.1)
            rest = await storm.rest()
    return rest
