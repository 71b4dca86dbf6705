"""Attacks on the way out: no document reaches an internal listener.

The listener is a sentinel on loopback; nothing here dials a public address, because every name resolves inside the
test and everything public is mapped to a socket factory that refuses.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from gateway.domain.http.requests import UpstreamRequest
from gateway.errors import EgressDenied, FetchFailed, UpstreamUnreachable
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.document_fetch import fetch_document

PUBLIC = "192.0.32.7"
"""A public address in the eyes of the guard; dialling it is replaced by a refusal."""

SPELLINGS = [
    # loopback, as literals of every kind
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "0",
    "0.0.0.0",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0x0.0x0.0x1",
    "0X7F000001",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "00000177.0.0.1",
    "127.0.0.1.",
    "127.0.0.1..",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::FFFF:7F00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2001:0:7f00:1::1]",
    "[::1%25lo]",
    "[fe80::1%25lo]",
    "[fe80::1%lo]",
    # full-width and other look-alikes
    "１２７.０.０.１",  # full-width digits
    "127。0。0。1",
    "127．0．0．1",
    "①②⑦.⓪.⓪.①",
    "ｌocalhost",
    "loc%61lhost",
    "%6c%6fcalhost",
    # names of this machine
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost..",
    "localhost.localdomain",
    "ip6-localhost",
    "sub.localhost",
    # user-info and separators that split the authority in two
    "public.test@127.0.0.1",
    "public.test:80@127.0.0.1",
    "127.0.0.1@public.test@127.0.0.1",
    "public.test%40127.0.0.1",
    "public.test\\@127.0.0.1",
    "127.0.0.1\\.public.test",
    "127.0.0.1%00.public.test",
    "127.0.0.1%2f.public.test",
    "127.0.0.1#@public.test",
    "127.0.0.1?@public.test",
    "127.0.0.1\t",
    " 127.0.0.1",
    "127.0.0.1\r\nX: y",
    "127.0.0.1,public.test",
    "127.0.0.1;public.test",
    # metadata and private networks
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[fd00:ec2::254]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[fc00::1]",
    "[fe80::1]",
    "[ff02::1]",
    # names that resolve inside
    "metadata.test",
    "inner.test",
    "inner6.test",
    "mixed.test",
    "mixed6.test",
    "nat64.test",
    "mapped.test",
    "scoped.test",
    "numeric.test",
]

NAMES = {
    "metadata.test": ["169.254.169.254"],
    "inner.test": ["127.0.0.1"],
    "inner6.test": ["::1"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "mixed6.test": ["::1", PUBLIC],
    "nat64.test": ["64:ff9b::7f00:1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "scoped.test": ["fe80::1%lo"],
    "numeric.test": ["2130706433"],
    "public.test": [PUBLIC],
}


@dataclass(slots=True)
class Sentinel:
    """A listener that nothing may reach."""

    port: int = 0
    connects: int = 0


class Names:
    """The test's name system; what it does not know is read as the system would read a number or a local name."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name."""
        self.asked.append(host)
        known = NAMES.get(host.lower().rstrip("."))
        if known is not None:
            return known
        if host.lower().strip(".").endswith(("localhost", "localdomain")):
            return ["127.0.0.1"]
        try:
            return [socket.inet_ntoa(socket.inet_aton(host))]
        except (OSError, UnicodeError):
            raise OSError("unknown name") from None

    def close(self) -> None:
        """Nothing to close."""


@asynccontextmanager
async def sentinel() -> AsyncGenerator[Sentinel]:
    """Listens on loopback, both families where there are two, for as long as the block runs."""
    seen = Sentinel()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.connects += 1
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()


async def by_call(upstream: UpstreamClient, url: str) -> None:
    """A tool call to this URL."""
    await upstream.send(UpstreamRequest(method="GET", url=url, idempotent=True))


async def by_post(upstream: UpstreamClient, url: str) -> None:
    """A tool call with a body to this URL."""
    await upstream.send(UpstreamRequest(method="POST", url=url, body=b"x"))


async def by_fetch(upstream: UpstreamClient, url: str) -> None:
    """A document imported from this URL."""
    await fetch_document(upstream, url, limit=1 << 20)


Door: TypeAlias = Callable[[UpstreamClient, str], Awaitable[None]]
OUTBOUND_PATHS: tuple[Door, ...] = (by_call, by_post, by_fetch)
UNBOUNDED = BulkheadLimits(failures=2000, reserve=0)
"""Failures of one attempt keep none of the next ones from being made."""


@pytest.fixture(autouse=True)
def no_public_dial(monkeypatch: pytest.MonkeyPatch) -> None:
    """The public address represents the internet: a dial of it fails here instead of leaving the machine."""
    loop_connect = socket.socket.connect

    def connect(self: socket.socket, address: tuple[str, int]) -> None:
        if address[0] == PUBLIC:
            raise ConnectionRefusedError
        loop_connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The standard loop, which dials through `socket.connect`; the guard itself is tested on both."""
    return "asyncio", {"use_uvloop": False}


def test_there_are_at_least_sixty_spellings() -> None:
    """Ours: the list only grows (TEN-5)."""
    assert len(set(SPELLINGS)) == len(SPELLINGS) >= 60


@pytest.mark.parametrize("door", OUTBOUND_PATHS)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_no_spelling_reaches_an_inner_address(scheme: str, door: Door) -> None:
    """Ours: the resolved address decides, whatever the text looked like; the error shows no address (TEN-5)."""
    async with sentinel() as listener, UpstreamClient(lookup=Names(), rules=UNBOUNDED) as upstream:
        for spelling in SPELLINGS:
            with pytest.raises((EgressDenied, FetchFailed, UpstreamUnreachable)) as caught:
                await door(upstream, f"{scheme}://{spelling}:{listener.port}/latest/meta-data/")

            assert listener.connects == 0, spelling
            assert not any(text in str(caught.value) for text in ("127.0.0.1", "169.254", "::1")), spelling


async def test_the_listener_notices_when_it_is_allowed() -> None:
    """Ours: the sentinel would notice; it is the guard that keeps it quiet, not the test."""
    async with sentinel() as listener:
        allowed = UpstreamClient(lookup=Names(), egress_allow=[f"127.0.0.1:{listener.port}"])
        async with allowed as upstream:
            for count, host in enumerate(("127.0.0.1", "inner.test", "0x7f000001", "localhost."), start=1):
                with pytest.raises(UpstreamUnreachable):
                    await by_post(upstream, f"http://{host}:{listener.port}/")
                assert listener.connects == count


@pytest.mark.parametrize("real", [True, False])
async def test_resolved_numbers_that_are_addresses_are_refused(real: bool) -> None:
    """Ours: getaddrinfo reads numbers as addresses; the answer is judged like any other."""
    async with sentinel() as listener, UpstreamClient(lookup=None if real else Names()) as upstream:
        for host in ("localhost", "0x7f000001", "localhost."):
            with pytest.raises((EgressDenied, UpstreamUnreachable)):
                await by_call(upstream, f"http://{host}:{listener.port}/")

        assert listener.connects == 0


class Rebinding:
    """Answers a public address first and an inner one the next time, or the other way round."""

    def __init__(self, first: str, second: str) -> None:
        self._answers = (first, second)
        self.asked = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """One of the two, in turn."""
        self.asked += 1
        return [self._answers[(self.asked - 1) % 2]]

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("answers", [(PUBLIC, "127.0.0.1"), ("127.0.0.1", PUBLIC), (PUBLIC, "::1")])
async def test_a_name_that_changes_between_check_and_dial_never_leads_inside(answers: tuple[str, str]) -> None:
    """Ours: the checked address is the dialled one, two hundred times (TEN-5)."""
    names = Rebinding(*answers)
    async with sentinel() as listener, UpstreamClient(lookup=names, rules=UNBOUNDED) as upstream:
        for _ in range(200):
            with pytest.raises((EgressDenied, UpstreamUnreachable)):
                await by_post(upstream, f"http://rebind.test:{listener.port}/")

        assert listener.connects == 0
    assert names.asked == 200


@pytest.mark.parametrize("door", OUTBOUND_PATHS)
async def test_ports_of_other_protocols_are_not_dialled(door: Door) -> None:
    """Ours: a public address is open for the web, not for mail or shells."""
    async with UpstreamClient(lookup=Names(), rules=UNBOUNDED) as upstream:
        for port in (1, 22, 25, 110, 465, 587, 0, 65536, 99999):
            with pytest.raises((EgressDenied, FetchFailed)):
                await door(upstream, f"http://public.test:{port}/")


@pytest.mark.parametrize("door", OUTBOUND_PATHS)
async def test_no_other_scheme_is_spoken(door: Door) -> None:
    """Ours: http and https, nothing else."""
    async with sentinel() as listener:
        async with UpstreamClient(egress_allow=[f"127.0.0.1:{listener.port}"], rules=UNBOUNDED) as upstream:
            for scheme in ("file", "ftp", "data", "gopher", "dict", "ldap", "jar", "ws", "wss", "unix", "tcp"):
                with pytest.raises((EgressDenied, FetchFailed)):
                    await door(upstream, f"{scheme}://127.0.0.1:{listener.port}/etc/passwd")

        assert listener.connects == 0
