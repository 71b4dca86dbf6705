"""Connections are made in order, within bounds and in time."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import EgressDenied, UpstreamTimeout, UpstreamUnreachable
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from gateway.upstream.egress.allow_list import NOTHING, AllowList
from gateway.upstream.egress.guard import DialTarget, Guard
from gateway.upstream.egress.origins import read_url
from gateway.upstream.http.connector import Connector
from gateway.upstream.http.errors import NotConnected
from tests.integration.upstream.loopback import OK, loopback, states
from tests.support.certificates import self_signed


class Names:
    """Every name has these addresses; with none, there is never an answer."""

    def __init__(self, *addresses: str) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Them all."""
        self.asked.append(host)
        if not self._addresses:
            await asyncio.Event().wait()
        return self._addresses

    def close(self) -> None:
        """Nothing to close."""


class Watched(Guard):
    """Remembers what it was asked to dial."""

    def __init__(self, egress_allow: Sequence[str]) -> None:
        super().__init__(egress_allow)
        self.dialled: list[object] = []

    def open_socket(self, info: DialTarget, permitted: AllowList = NOTHING) -> socket.socket:
        """As the guard does."""
        self.dialled.append(info[4][0])
        return super().open_socket(info, permitted)


async def test_addresses_are_tried_in_their_order() -> None:
    """Ours: the first that takes the connection is the one."""
    async with loopback(states(OK)) as server:
        host = f"many.internal:{server.port}"
        names = Names("127.0.0.3", "::1", "127.0.0.1", "127.0.0.2")
        guard = Watched([host])
        found = read_url(f"http://{host}/")
        assert found is not None
        made = await Connector(names, guard, dial_s=10).dial(found[0], asyncio.Protocol)
        assert isinstance(made, asyncio.Protocol)

    assert guard.dialled == ["127.0.0.3", "::1", "127.0.0.1"]
    assert names.asked == ["many.internal"]


async def test_a_name_with_countless_addresses_is_tried_in_bounded_time() -> None:
    """Ours: some of them are enough to know that no server is there."""
    async with loopback(states(OK)) as server:
        pass
    host = f"many.internal:{server.port}"
    guard = Watched([host])
    found = read_url(f"http://{host}/")
    assert found is not None
    with pytest.raises(NotConnected):
        await Connector(Names(*["127.0.0.1"] * 500), guard, dial_s=10).dial(found[0], asyncio.Protocol)

    assert len(guard.dialled) == 16


@pytest.mark.parametrize("names", [Names(), Names("127.0.0.1")])
async def test_a_connection_that_does_not_come_about_has_its_deadline(names: Names) -> None:
    """Ours: a name system without an answer and a handshake without one are the same to the caller."""
    timeouts, rules = Timeouts(connect_s=0.1, first_byte_s=60), BulkheadLimits(reserve=0)
    async with loopback(states(OK)) as server:  # it waits for a request while we wait for the handshake
        host = f"slow.internal:{server.port}"
        async with UpstreamClient(egress_allow=[host], lookup=names, timeouts=timeouts, rules=rules) as upstream:
            with anyio.fail_after(20), pytest.raises(UpstreamTimeout, match="did not accept a connection in time"):
                await upstream.send(UpstreamRequest(method="GET", url=f"https://{host}/", idempotent=True))


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0177.0.0.1", "127.0.0.1."])
async def test_another_spelling_of_an_address_is_not_looked_up(host: str) -> None:
    """Ours: it is refused, though the address itself is allowed."""
    names = Names("127.0.0.1")
    async with (
        loopback(states(OK)) as server,
        UpstreamClient(egress_allow=[server.authority], lookup=names) as upstream,
    ):
        with pytest.raises(EgressDenied):
            await upstream.send(UpstreamRequest(method="GET", url=f"http://{host}:{server.port}/"))

    assert (names.asked, server.connections) == ([], 0)


async def test_an_address_is_verified_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9110 section 4.3.5: the certificate has to name the address itself, and no name is asked for."""
    path = self_signed(tmp_path, "api.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    names = Names("127.0.0.1")
    async with (
        loopback(states(OK), tls=tls) as server,
        UpstreamClient(egress_allow=[server.authority], lookup=names) as upstream,
    ):
        request = UpstreamRequest(method="GET", url=f"https://{server.authority}/")
        answers = [await upstream.send(request) for _ in range(2)]

    assert [answer.body for answer in answers] == [b"{}", b"{}"]
    assert (names.asked, server.connections) == ([], 1)


async def test_a_body_over_tls_may_end_with_the_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 9112 section 9.8: as over a plain connection; a large one comes whole."""
    path = self_signed(tmp_path, "api.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    content = b"0123456789" * 300_000
    async with (
        loopback(states(b"HTTP/1.1 200 OK\r\n\r\n", content, keep=False), tls=tls) as server,
        UpstreamClient(egress_allow=[server.authority]) as upstream,
    ):
        url = f"https://{server.authority}/"
        answer = await upstream.send(UpstreamRequest(method="PUT", url=url, body=content))

    assert answer.body == content
    assert server.exchanges[0].body == content


async def test_bytes_before_the_handshake_are_no_answer() -> None:
    """Ours: nothing that came in the clear is read as if it had come over TLS."""
    spoken = 0

    async def speak(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal spoken
        with contextlib.suppress(ConnectionError):
            writer.write(OK + OK)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        spoken += 1

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    host = f"plain.internal:{server.sockets[0].getsockname()[1]}"
    async with (
        server,
        UpstreamClient(egress_allow=[host], lookup=Names("127.0.0.1"), rules=BulkheadLimits(failures=1000)) as upstream,
    ):
        for _ in range(20):
            with anyio.fail_after(20), pytest.raises(UpstreamUnreachable):
                await upstream.send(UpstreamRequest(method="GET", url=f"https://{host}/"))
        with anyio.fail_after(20):
            while spoken < 20:
                await anyio.lowlevel.checkpoint()


async def test_a_handshake_that_is_cancelled_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a caller that disconnects while a connection is made, at any point, closes its socket (R19)."""
    path = self_signed(tmp_path, "api.test")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    random = Random(5)
    async with (
        loopback(states(OK, keep=False), tls=tls) as server,
        UpstreamClient(egress_allow=[server.authority]) as upstream,
    ):
        request = UpstreamRequest(method="GET", url=f"https://{server.authority}/")
        assert upstream._open is not None  # pyright: ignore[reportPrivateUsage]
        pool = upstream._open[1].pool  # pyright: ignore[reportPrivateUsage]
        with anyio.fail_after(60):
            for _ in range(200):
                call = asyncio.create_task(upstream.send(request))
                for _ in range(random.randrange(14)):
                    await asyncio.sleep(0)  # any point of its way
                call.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    assert (await call).body == b"{}"
            while len(pool):
                await anyio.lowlevel.checkpoint()
            assert (
                await upstream.send(UpstreamRequest(method="GET", url=f"https://{server.authority}/"))
            ).status == 200
