"""Request smuggling through upstreams that leave request bodies unread: no byte crosses a tenant or a credential.

Such an upstream parses an unread body as the next request on the connection. The attacker's body is the head of a
`POST /notes` with a length; whatever follows on the connection becomes a note, which the attacker can read. The
upstreams are Python's `http.server`, as its documentation suggests to use it, and a server written by hand on streams.
"""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from typing import Any

import anyio
import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.domain.identifiers import TenantId
from gateway.upstream.auth.credentials import digest_of
from gateway.upstream.client import UpstreamClient
from tests.integration.upstream.loopback import OK, Exchange, loopback
from tests.integration.upstream.loopback import body as says_json
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.servers import TestDatabase

SECRET = "VICTIM-SECRET-CANARY-77"
SMUGGLED = "POST /notes HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 120\r\n\r\n"
POISON = "GET /poisoned HTTP/1.1\r\nHost: x\r\n\r\n"
METHODS = ("get", "head", "delete", "patch", "post", "put", "options")


@dataclass
class Careless:
    """An upstream that leaves bodies unread: the heads that it took for requests, and the notes."""

    port: int = 0
    status: int = 200
    targets: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    @property
    def authority(self) -> str:
        """Host and port, as the operator's list wants them."""
        return f"127.0.0.1:{self.port}"

    def answer(self, target: str, credential: str) -> tuple[int, bytes]:
        """Status and body of one request: its destination and its credential."""
        self.targets.append(target)
        return self.status, json.dumps({"path": target, "credential": credential}).encode()


@contextmanager
def python_server() -> Generator[Careless]:
    """`http.server` with kept connections; only /notes reads its body."""
    seen = Careless()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 20

        def reply(self) -> None:
            if self.path == "/notes":
                seen.notes.append(self.rfile.read(int(self.headers["Content-Length"])).decode("latin-1"))
            status, content = seen.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_HEAD = do_DELETE = do_PATCH = do_POST = do_PUT = do_OPTIONS = reply  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    seen.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def by_hand(seen: Careless, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A server as it is written for a device: a head ends with an empty line, and only /notes has a body."""
    with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, ValueError):
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lstrip("\r\n").split("\r\n")
            fields = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines[1:]}
            method, target = lines[0].split(" ")[:2]
            if target == "/notes":
                seen.notes.append((await reader.readexactly(int(fields["content-length"]))).decode("latin-1"))
            status, content = seen.answer(target, fields.get("authorization", ""))
            head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
            writer.write(head.encode() + (b"" if method == "HEAD" else content))
    writer.close()


@pytest.fixture(params=["http.server", "by hand"])
async def careless(request: pytest.FixtureRequest) -> AsyncGenerator[Careless]:
    """An upstream that leaves bodies unread, of each make."""
    if request.param == "http.server":
        with python_server() as seen:
            yield seen
        return
    seen = Careless()
    tasks = set[asyncio.Task[Any]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await by_hand(seen, reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    yield seen
    server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def gateway(database: TestDatabase, redis_url: str, careless: Careless) -> AsyncGenerator[RunningGateway]:
    """A gateway that may reach the upstream."""
    async with running_gateway(
        database.app_url, redis_url, egress_allow=[careless.authority], log_level="error"
    ) as running:
        yield running


def _document(url: str) -> dict[str, Any]:
    """An operation with a free-text body for each method, and one that reads."""
    body = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    as_json = {"content": {"application/json": {"schema": {"type": "object"}}}}
    answer = {"200": {"description": "ok"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Careless", "version": "1"},
        "servers": [{"url": url}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {
            "/text": {
                method: {"operationId": f"{method}_text", "requestBody": body, "responses": answer}
                for method in METHODS
            },
            "/json": {"post": {"operationId": "post_json", "requestBody": as_json, "responses": answer}},
            "/data": {"get": {"operationId": "read_data", "responses": answer}},
        },
    }


@dataclass(frozen=True)
class Attacked:
    """Two credentials at one careless upstream, and requests with each."""

    upstream: UpstreamClient
    careless: Careless

    async def attack(self, tenant: str, secret: str, method: str, body: bytes) -> None:
        """A request whose body the upstream leaves unread."""
        await self._send(tenant, secret, method, "/text", body)

    async def read(self, tenant: str, secret: str) -> dict[str, Any]:
        """The response to a plain request of the victim."""
        found: dict[str, Any] = json.loads(await self._send(tenant, secret, "GET", "/data", None))
        return found

    async def _send(self, tenant: str, secret: str, method: str, path: str, body: bytes | None) -> bytes:
        request = UpstreamRequest(
            method=method.upper(),
            url=f"http://{self.careless.authority}{path}",
            headers=(("Authorization", f"Bearer {secret}"),),
            body=body,
            credential=digest_of([secret]),
        )
        with anyio.fail_after(20):
            return (await self.upstream.send(request, tenant=TenantId(tenant))).body


@pytest.fixture
async def attacked(careless: Careless) -> AsyncGenerator[Attacked]:
    """A pool that may reach the upstream."""
    async with UpstreamClient(egress_allow=[careless.authority]) as upstream:
        yield Attacked(upstream, careless)


async def test_the_upstreams_of_these_attacks_are_careless(careless: Careless) -> None:
    """The attack works on a connection that is used again whatever was sent: this test can fail."""
    reader, writer = await asyncio.open_connection("127.0.0.1", careless.port)
    smuggled = SMUGGLED.replace("120", "80").encode()
    writer.write(b"DELETE /text HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(smuggled) + smuggled)
    writer.write(b"GET /data HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\n\r\n" % SECRET.encode() + b" " * 60)
    with anyio.fail_after(20):
        await reader.readuntil(b'"/notes"')
    writer.close()

    assert SECRET[:10] in careless.notes[0]


@pytest.mark.parametrize("smuggled", [SMUGGLED, POISON, SMUGGLED.replace("\r\n", "\n")], ids=["note", "poison", "lf"])
@pytest.mark.parametrize("attacker", ["other tenant", "same credential"])
async def test_an_unread_body_meets_no_other_request(attacked: Attacked, attacker: str, smuggled: str) -> None:
    """ISO-1: neither another tenant's request nor the next one of the same credential completes a smuggled head."""
    tenant, secret = ("evil", "EVIL-KEY") if attacker == "other tenant" else ("acme", SECRET)
    for method, status in product(METHODS, (200, 404)):
        attacked.careless.status = status
        await attacked.attack(tenant, secret, method, smuggled.encode())
        attacked.careless.status = 200
        assert await attacked.read("acme", SECRET) == {"path": "/data", "credential": f"Bearer {SECRET}"}

    assert not [note for note in attacked.careless.notes if "Bearer" in note or "/data" in note]


@pytest.mark.parametrize("status", [200, 404])
async def test_an_unread_json_body_holds_no_head(attacked: Attacked, status: int) -> None:
    """ISO-1: JSON keeps its connection after a success, because it has no line end, which every head needs."""
    body = json.dumps({"text": SMUGGLED}).encode()
    for _ in range(3):
        attacked.careless.status = status
        await attacked.attack("evil", "EVIL-KEY", "POST", body)
        attacked.careless.status = 200
        assert (await attacked.read("acme", SECRET))["credential"] == f"Bearer {SECRET}"

    assert attacked.careless.notes == []


async def test_two_credentials_of_one_tenant_share_no_connection(attacked: Attacked) -> None:
    """ISO-1: a kept connection serves one credential; requests without any have connections of their own."""
    assert attacked.upstream._open is not None  # pyright: ignore[reportPrivateUsage]
    pool = attacked.upstream._open[1].pool  # pyright: ignore[reportPrivateUsage]
    await attacked.read("acme", "one")
    await attacked.read("acme", "two")
    await attacked.read("acme", "one")
    await attacked.read("globex", "one")

    assert (len(pool), pool.held_by("acme"), pool.held_by("globex")) == (3, 2, 1)


@pytest.mark.parametrize("delay_s", [0, 0.02, 0.2])
async def test_a_late_second_response_reaches_no_other_tenant(delay_s: float) -> None:
    """ISO-1: an upstream that responds twice to one tenant, at whatever moment, poisons no call of another."""
    late = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        if exchange.line.endswith("/twice"):
            await exchange.write(OK)
            await asyncio.sleep(delay_s)  # the upstream's own delay: it is what the test is about
            with suppress(ConnectionError):
                await exchange.write(says_json(b'{"of":"evil"}'))
            late.set()
        else:
            await exchange.write(says_json(b'{"of":"acme"}'))
        return True

    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority]) as upstream:
        with anyio.fail_after(20):
            await upstream.send(server.get("/twice"), tenant=TenantId("evil"))
            rounds = 0
            while not late.is_set() or rounds < 3:
                rounds += late.is_set()
                read = await upstream.send(server.get("/data"), tenant=TenantId("acme"))
                assert read.body == b'{"of":"acme"}'


async def test_an_agent_captures_no_credential_through_a_tool(gateway: RunningGateway, careless: Careless) -> None:
    """ISO-1: through the gateway's own URL, with imported operations and a declared handler, in and across tenants."""
    keys = dict[str, str]()
    for name in ("evil", "acme"):
        await gateway.create_tenant(name)
        credentials = {"token": SECRET if name == "acme" else "EVIL-KEY"}
        await gateway.import_document(name, _document(f"http://{careless.authority}"), credentials=credentials)
        keys[name] = await gateway.create_key(name)

    async def call(name: str, tool: str, **arguments: object) -> dict[str, Any]:
        answer = await gateway.rpc(name, keys[name], "tools/call", {"name": tool, "arguments": arguments})
        found: dict[str, Any] = answer.json()
        return found

    for attacker in ("evil", "acme"):
        for method in METHODS:
            await call(attacker, f"{method}_text", body=SMUGGLED)
            result = await call("acme", "read_data")
            assert result["result"]["structuredContent"]["path"] == "/data"

    assert not [note for note in careless.notes if SECRET in note or "/data" in note]
    assert "/poisoned" not in careless.targets
