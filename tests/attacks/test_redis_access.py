"""The access that a deployment gives the gateway to its Redis: the ACL of the manual, and TLS."""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from gateway.domain.events import CatalogMoved
from gateway.domain.identifiers import TenantId
from gateway.errors import RedisUnavailable
from gateway.redis.diagnostics import examine_redis
from gateway.redis.event_bus import EventBus
from tests.support.certificates import self_signed
from tests.support.documents import many
from tests.support.gateway import running_gateway
from tests.support.replicas import commanding
from tests.support.upstream import recording_upstream

_MANUAL = Path(__file__).parents[2] / "docs" / "operations.md"
_PASSWORD = "password-of-the-gateway"
_TENANT = TenantId("ten_a")


@pytest.fixture
async def restricted(redis_url: str) -> AsyncGenerator[str]:
    """The URL of a login with the access that the manual names, and no more."""
    [rules] = re.findall(r"^user gateway (.*)$", _MANUAL.read_text(), re.MULTILINE)
    words = [f">{_PASSWORD}" if word.startswith(">") else word for word in rules.split()]
    with commanding(redis_url) as command:
        command("ACL", "SETUSER", "gateway", "reset", *words)
        yield redis_url.replace("unix://", f"unix://gateway:{_PASSWORD}@", 1)
        command("ACL", "DELUSER", "gateway")


async def test_a_gateway_serves_with_the_access_of_the_manual(database_url: str, restricted: str) -> None:
    """Ours: sessions, calls, events and the doctor need no more rights at Redis than the manual lists (TEN-5,
    SRV-6).
    """
    async with (
        recording_upstream() as upstream,
        running_gateway(database_url, restricted, egress_allow=[upstream.authority]) as gateway,
    ):
        await gateway.create_tenant("acme")
        await gateway.import_document("acme", many(upstream.url, 1))
        key = await gateway.create_key("acme")
        async with gateway.client("acme", key, "legacy") as client:
            called = await client.call_tool("op_0000", {})
        ready = await gateway.http.get("/readyz")
        found = await examine_redis(restricted)

    assert not called.is_error
    assert ready.status_code == 200
    assert found.number >= (6, 2)


@pytest.mark.parametrize(
    "forbidden",
    [("FLUSHALL",), ("KEYS", "*"), ("CONFIG", "GET", "*"), ("ACL", "LIST"), ("GET", "other:key"), ("MONITOR",)],
    ids=lambda command: command[0],
)
async def test_the_access_of_the_manual_ends_at_the_namespace(restricted: str, forbidden: tuple[str, ...]) -> None:
    """Ours: a stolen login administers nothing and reads nothing of another program (TEN-5)."""
    socket = urlsplit(restricted)
    reader, writer = await asyncio.open_unix_connection(socket.path)
    writer.write(_command("AUTH", "gateway", _PASSWORD) + _command(*forbidden))
    reported = [await reader.readline() for _ in range(2)]
    writer.close()

    assert reported[0] == b"+OK\r\n"
    assert reported[1].startswith(b"-NOPERM")


def _command(*words: str) -> bytes:
    return f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words)


@asynccontextmanager
async def _behind_tls(redis_url: str, certificate: Path) -> AsyncGenerator[int]:
    """The port of a TLS listener in front of Redis; the redis-server of the tests is built without TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    pumping = set[asyncio.Task[None]]()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        except (ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(urlsplit(redis_url).path)
        for task in (pump(reader, inner_writer), pump(inner_reader, writer)):
            pumping.add(asyncio.ensure_future(task))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in pumping:
            task.cancel()
        await asyncio.gather(*pumping, return_exceptions=True)


async def test_redis_is_reached_over_tls(redis_url: str, authority: Path) -> None:
    """Ours: rediss:// with a named root carries commands and events (TEN-5)."""
    received: list[Any] = []
    arrived = anyio.Event()
    async with _behind_tls(redis_url, authority) as port:
        url = f"rediss://127.0.0.1:{port}?ssl_ca_certs={authority}"
        async with EventBus(url, secret=b"secret") as bus:
            bus.subscribe(received.append)
            bus.subscribe(lambda _: arrived.set())
            await bus.publish(CatalogMoved(tenant=_TENANT, revision=1))
            with anyio.fail_after(10):
                await arrived.wait()
            await bus.check()
        assert (await examine_redis(url)).number >= (6, 2)

    assert received == [CatalogMoved(tenant=_TENANT, revision=1)]


@pytest.mark.parametrize("wrong", ["root", "name"])
async def test_a_redis_that_is_another_is_not_spoken_to(
    redis_url: str, authority: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
) -> None:
    """Ours: certificate and name are verified without being asked for (TEN-5)."""
    root = self_signed(tmp_path, "another.test") if wrong == "root" else authority
    monkeypatch.setenv("SSL_CERT_FILE", str(root))  # the machine's roots count, too
    host = "localhost" if wrong == "name" else "127.0.0.1"
    async with _behind_tls(redis_url, authority) as port:
        with pytest.raises(RedisUnavailable):
            await examine_redis(f"rediss://{host}:{port}?ssl_ca_certs={root}")
