"""Room for large bodies: counted from before a body is read until its call no longer needs it; nothing is timed."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

import anyio
import pytest

from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.http.requests import UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import ResultBusy
from gateway.errors import UpstreamBusy
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from gateway.upstream.limits import ROOM_UNIT_BYTES, SMALL_BODY_BYTES
from tests.integration.upstream.loopback import Exchange, Loopback, loopback

ACME, OTHER = TenantId("ten_acme"), TenantId("ten_other")
SIZE = 9 * ROOM_UNIT_BYTES
LIMIT_UNITS = 10


@dataclass(slots=True)
class Upstream:
    """A client, and a server that sends the first part of each large body, and the rest when `rest` is set."""

    client: UpstreamClient
    server: Loopback
    rest: anyio.Event
    heads: list[str] = field(default_factory=list[str])

    @property
    def pool(self) -> FairSlotPool:
        """The room of the client."""
        return self.client.room.slot_pool

    async def get(self, path: str, tenant: TenantId = ACME, holder: "Holder | None" = None) -> UpstreamResponse:
        """Request a body."""
        return await self.client.send_streaming(self.server.get(path), tenant=tenant, holder=holder)


class Holder:
    """A call that keeps a body."""

    def __init__(self) -> None:
        self.release: Callable[[], None] | None = None

    def hold_body(self, release: Callable[[], None]) -> None:
        """Keep the room of a body."""
        assert self.release is None  # the room of the last body was released first
        self.release = release

    def release_body(self) -> None:
        """Release the room of the last body."""
        release, self.release = self.release, None
        if release is not None:
            release()


def _pieces(path: str) -> tuple[bytes, bytes, bytes]:
    """Head, first part and rest of the answer to a request for this path."""
    content = Random(7).randbytes(SIZE // 2).hex().encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
    at = SMALL_BODY_BYTES + ROOM_UNIT_BYTES // 4
    match path:
        case "/small":
            return head + b"Content-Length: 2\r\n\r\n", b"ok", b""
        case "/length":
            return head + b"Content-Length: %d\r\n\r\n" % len(content), content[:at], content[at:]
        case "/close":
            return head + b"Connection: close\r\n\r\n", content[:at], content[at:]
        case "/gzip":
            content = zlib.compress(content, wbits=31)
            return (
                head + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(content),
                content[:at],
                content[at:],
            )
        case _:
            events = b"data: " + content + b"\n\n"
            return head.replace(b"text/plain", b"text/event-stream") + b"\r\n", events[:at], events[at:]


@asynccontextmanager
async def upstream(timeouts: Timeouts | None = None, at_once: int = 32) -> AsyncGenerator[Upstream]:
    """A client and a server."""
    rest, heads = anyio.Event(), list[str]()

    async def answer(exchange: Exchange) -> bool:
        path = exchange.line.split()[1]
        head, first, others = _pieces(path)
        heads.append(path)
        await exchange.write(head, first)
        if others:
            await rest.wait()
            await exchange.write(others)
        return path not in {"/close", "/events"}

    async with loopback(answer) as server:
        allowed = [server.authority]
        rules = BulkheadLimits(at_once=at_once, wait_s=30.0)
        async with UpstreamClient(egress_allow=allowed, timeouts=timeouts, rules=rules) as client:
            yield Upstream(client, server, rest, heads)


async def _until(happened: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not happened():  # noqa: ASYNC110  # the sockets have no event
            await anyio.sleep(0.001)


@pytest.mark.parametrize(
    ("path", "units"), [("/length", 9), ("/close", LIMIT_UNITS), ("/gzip", LIMIT_UNITS), ("/events", 10)]
)
async def test_a_large_body_has_room_before_it_is_read(path: str, units: int) -> None:
    """ISO-3: the declared size is held, the limit of a body without one; what it did not need is given back."""
    holder, got = Holder(), list[UpstreamResponse]()

    async def get() -> None:
        got.append(await place.get(path, holder=holder))

    async with upstream() as place:
        async with anyio.create_task_group() as group:
            group.start_soon(get)
            await _until(lambda: place.pool.held(ACME) > 0)
            assert place.pool.held(ACME) == units
            place.rest.set()
        assert len(got[0].body) >= SIZE
        assert place.pool.held(ACME) == (10 if path == "/events" else 9)
        holder.release_body()
        assert place.pool.busy == 0
        await place.get(path)  # without a holder, only the reading is counted
        assert (await place.get("/small", holder=holder)).body == b"ok"
        assert (place.pool.busy, holder.release) == (0, None)


async def test_concurrent_bodies_are_bounded_and_another_tenant_continues() -> None:
    """ISO-3: of many large answers of a tenant seven are read at a time; another tenant's are not behind them."""
    got: list[int] = []

    async def get(tenant: TenantId) -> None:
        got.append(len((await place.get("/length", tenant)).body))

    async with upstream() as place:
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(get, ACME)
            await _until(lambda: place.pool.waiting == 5)
            assert (place.pool.held(ACME), len(place.heads)) == (63, 12)
            assert place.pool.held(ACME) <= place.pool.share == 64
            group.start_soon(get, OTHER)
            await _until(lambda: place.pool.held(OTHER) == 9)
            place.rest.set()
        assert (got, place.pool.busy, place.pool.waiting) == ([SIZE] * 13, 0, 0)


async def test_a_body_that_waits_leaves_the_bulkhead_and_ends_with_its_call() -> None:
    """Ours: an upstream that has answered is not busy; a cancelled wait gives everything back (ISO-3, OAS-10)."""
    async with upstream(at_once=1) as place:
        assert place.pool.try_take(ACME, 60)
        waiting = [asyncio.create_task(place.get("/length")) for _ in range(3)]
        await _until(lambda: place.pool.waiting == 3)
        with anyio.fail_after(30):
            assert (await place.get("/small")).body == b"ok"
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert (place.pool.held(ACME), place.pool.waiting) == (60, 0)

        reading = asyncio.create_task(place.get("/length"))
        await _until(lambda: place.pool.waiting == 1)
        place.pool.free(ACME, 60)
        await _until(lambda: place.pool.held(ACME) == 9)
        reading.cancel()
        await asyncio.wait([reading])
        assert (place.pool.busy, place.pool.waiting) == (0, 0)
        with anyio.fail_after(30):
            assert (await place.get("/small")).body == b"ok"


async def test_without_room_in_time_the_call_reports_that_it_has_run() -> None:
    """Ours: the upstream has answered, so neither it nor the caller is at fault; the circuit stays closed (OAS-10)."""
    async with upstream(Timeouts(total_s=1.0)) as place:  # the margin to read a body is as long
        assert place.pool.try_take(ACME, 64)
        for _ in range(6):
            with pytest.raises(ResultBusy, match=r"has run.*its share of the megabytes of large results.*64 of 256"):
                await place.get("/length", holder=Holder())
        with pytest.raises(UpstreamBusy, match="large responses are being read"):  # of a watch, or a document
            await place.get("/length")
        assert (await place.get("/small")).body == b"ok"
        assert place.pool.waiting == 0


async def test_a_call_holds_the_room_of_one_body() -> None:
    """Ours: calls that read several large bodies never wait for one another (ISO-3)."""

    async def read_three() -> None:
        holder = Holder()
        for _ in range(3):
            await place.get("/length", holder=holder)
        holder.release_body()

    async with upstream() as place:
        place.rest.set()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for _ in range(6):
                    group.start_soon(read_three)
        assert (place.pool.busy, len(place.heads)) == (0, 18)
