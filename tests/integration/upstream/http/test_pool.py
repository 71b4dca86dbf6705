"""Connections: number of connections, order of waiters, reuse, and that no connection is ever lost."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from gateway.errors import UpstreamAnswerBroken, UpstreamBusy, UpstreamError
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.egress.guard import Guard
from gateway.upstream.egress.origins import Origin, PoolKey, read_url
from gateway.upstream.egress.resolver import SystemLookup
from gateway.upstream.http.connection import Connection
from gateway.upstream.http.connector import Connector
from gateway.upstream.http.errors import BrokenOff, ConnectedLate
from gateway.upstream.http.pool import ConnectionPool
from gateway.upstream.http.response import Response
from tests.integration.upstream.loopback import OK, Exchange, Loopback, body, loopback, states

PATIENT = BulkheadLimits(failures=100_000, at_once=10_000)


def origin(server: Loopback) -> Origin:
    """Address of this server."""
    found = read_url(f"http://{server.authority}/")
    assert found is not None
    return found[0]


@asynccontextmanager
async def connections(
    *servers: Loopback, limit: int = 2, share: int = 100, connect_s: float = 30
) -> AsyncGenerator[ConnectionPool]:
    """A pool of so many connections, to these servers."""
    lookup = SystemLookup()
    dialer = Connector(lookup, Guard([server.authority for server in servers]), dial_s=connect_s)
    opened = ConnectionPool(dialer, connect_s=connect_s, limit=limit, share=share)
    try:
        yield opened
    finally:
        await opened.close()
        assert len(opened) == 0


async def ask(connection: Connection, *, content: bytes | None = None) -> Response:
    """The answer to a request on this connection, once its head is there."""
    waiter = asyncio.get_running_loop().create_future()
    head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(content or b"")
    answer = connection.ask(head, content, waiter, is_head=False)
    await waiter
    assert answer.fault is None
    return answer


def key(server: Loopback, tenant: str = "acme", credential: bytes = b"") -> PoolKey:
    """Key of the connections of a tenant to this server."""
    return PoolKey(tenant, origin(server).key, credential)


async def dial(pool: ConnectionPool, server: Loopback, tenant: str = "acme") -> Connection:
    """A connection of the tenant to this server."""
    return await pool.open(key(server, tenant), origin(server))


def take(pool: ConnectionPool, server: Loopback, tenant: str = "acme", credential: bytes = b"") -> Connection | None:
    """An idle connection of the tenant to this server."""
    return pool.take(key(server, tenant, credential), asyncio.get_running_loop().time())


async def settle(until: int, pool: ConnectionPool) -> None:
    """Wait until there are so many connections."""
    with anyio.fail_after(20):
        while len(pool) != until:
            await anyio.lowlevel.checkpoint()


async def test_the_connection_that_was_used_last_is_used_first() -> None:
    """Ours: the others grow old and are closed; no origin is given another's."""
    async with (
        loopback(states(OK)) as server,
        loopback(states(OK)) as other,
        connections(server, other, limit=3) as pool,
    ):
        both = [await dial(pool, server) for _ in range(2)]
        for connection in both:
            (await ask(connection)).release()

        assert take(pool, other) is None
        assert [take(pool, server) for _ in range(3)] == [both[1], both[0], None]


async def test_a_full_pool_evicts_the_oldest_kept_connection() -> None:
    """Ours: an idle upstream keeps no other from a connection."""
    async with loopback(states(OK)) as server, loopback(states(OK)) as other, connections(server, other) as pool:
        both = [await dial(pool, server) for _ in range(2)]
        for connection in both:
            (await ask(connection)).release()
        with anyio.fail_after(20):
            await ask(await dial(pool, other))

        assert [connection.is_fit for connection in both] == [False, True]
        assert (len(pool), pool.kept) == (2, 1)


async def test_a_tenant_holds_no_more_than_its_share() -> None:
    """ISO-3: calls of one tenant that are never answered leave the others their connections."""
    async with loopback(states(OK)) as server, connections(server, limit=8, share=2, connect_s=0.5) as pool:
        held = [await ask(await dial(pool, server, "evil")) for _ in range(2)]
        with pytest.raises(UpstreamBusy, match=r"limit 2 per replica.*retry later"):
            await dial(pool, server, "evil")
        others = [await dial(pool, server, tenant) for tenant in ("acme", "acme", "globex")]

        assert (pool.held_by("evil"), pool.held_by("acme"), len(pool)) == (2, 2, 5)
        held[0].release()
        assert take(pool, server, "evil") is not None
        for connection in others:
            connection.abort()
        held[1].close()
        await settle(1, pool)
        assert (pool.held_by("evil"), pool.held_by("acme")) == (1, 0)


async def test_a_tenant_at_its_share_evicts_its_own_idle_connections() -> None:
    """ISO-3: never those of another tenant."""
    async with (
        loopback(states(OK)) as server,
        loopback(states(OK)) as other,
        connections(server, other, limit=8, share=2) as pool,
    ):
        (await ask(await dial(pool, server, "acme"))).release()
        for answer in [await ask(await dial(pool, server, "evil")) for _ in range(2)]:
            answer.release()
        with anyio.fail_after(20):
            await dial(pool, other, "evil")

        assert (pool.held_by("evil"), pool.kept) == (2, 2)
        assert take(pool, server, "acme") is not None


async def test_tenants_that_wait_for_room_are_served_in_turn() -> None:
    """ISO-3: a hundred waiting calls of one tenant delay the first of another by one."""
    order = list[str]()
    async with loopback(states(OK)) as server, connections(server, limit=2, share=1) as pool:
        held = [await ask(await dial(pool, server, tenant)) for tenant in ("first", "second")]

        async def call(tenant: str) -> None:
            answer = await ask(await dial(pool, server, tenant))
            order.append(tenant)
            answer.release()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for tenant in ["evil"] * 6 + ["acme"] * 2 + ["globex"]:
                    group.start_soon(call, tenant)
                    await anyio.wait_all_tasks_blocked()
                held[0].release()  # the other is held on, so that one call is served at a time
        held[1].release()

        assert order[:3] == ["evil", "acme", "globex"]
        assert order[3:] == ["evil", "acme", "evil", "evil", "evil", "evil"]


async def test_a_connection_of_another_tenant_or_credential_is_not_reused() -> None:
    """ISO-1: a kept connection serves the key that opened it."""
    async with loopback(states(OK)) as server, connections(server) as pool:
        (await ask(await dial(pool, server, "acme"))).release()

        assert take(pool, server, "globex") is None
        assert take(pool, server, "acme", b"secret") is None
        assert take(pool, server, "acme") is not None


@pytest.mark.parametrize(("status", "kept"), [(200, 1), (302, 1), (400, 0), (503, 0)])
async def test_an_error_to_a_request_with_a_body_ends_its_connection(status: int, kept: int) -> None:
    """ISO-1: servers that refuse a request often leave its body unread."""
    async with (
        loopback(states(body(b"{}", status=status))) as server,
        UpstreamClient(egress_allow=[server.authority], rules=PATIENT) as upstream,
    ):
        await upstream.send(replace(server.get("/", method="POST", idempotent=False), body=b'{"a":1}'))

        assert upstream._open is not None  # pyright: ignore[reportPrivateUsage]
        assert upstream._open[1].pool.kept == kept  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("late", [OK, b"x"])
async def test_bytes_that_the_loop_has_not_seen_yet_end_a_kept_connection(late: bytes) -> None:
    """ISO-1: a late second response waits in the kernel when the next request looks for a connection."""
    async with loopback(states(OK)) as server, connections(server) as pool:
        (await ask(await dial(pool, server))).release()
        spoken = server.exchanges[0].writer.get_extra_info("socket")
        os.write(spoken.fileno(), late)  # no iteration of the event loop between this and the next line

        assert take(pool, server) is None


async def test_waiters_for_a_connection_are_served_in_order() -> None:
    """Ours: the first in line gets the connection that becomes free, or the room of one of another origin."""
    order = list[int]()
    async with (
        loopback(states(OK)) as server,
        loopback(states(OK)) as other,
        connections(server, other, limit=1) as pool,
    ):
        held = await ask(await dial(pool, server))

        async def call(number: int, to: Loopback) -> None:
            answer = await ask(await dial(pool, to))
            order.append(number)
            answer.release()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                for number, to in enumerate([server, other, other, server, server]):
                    group.start_soon(call, number, to)
                    await anyio.wait_all_tasks_blocked()
                assert order == []
                held.release()

        assert (order, len(pool)) == ([0, 1, 2, 3, 4], 1)
        assert (server.connections, other.connections) == (2, 1)


async def test_a_wait_for_room_ends_in_time_and_takes_nothing_along() -> None:
    """Ours: it counts as the time to connect; a caller that gives up or is cancelled is skipped."""
    async with loopback(states(OK)) as server, connections(server, limit=1, connect_s=0.5) as pool:
        held = await ask(await dial(pool, server))
        with pytest.raises(ConnectedLate):
            await dial(pool, server)
        for given_first in (True, False):
            waiting = asyncio.create_task(dial(pool, server))
            await asyncio.sleep(0)  # let it get in line
            for step in (held.release, waiting.cancel) if given_first else (waiting.cancel, held.release):
                step()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            kept = take(pool, server)
            assert kept is not None
            held = await ask(kept)

        assert (len(pool), server.connections) == (1, 1)


@pytest.mark.parametrize("unasked", [b"x", b"\r\n", OK, b""])
async def test_unrequested_bytes_end_the_connection(unasked: bytes) -> None:
    """RFC 9112 section 9.5: bytes between requests belong to no response, and an end is an end."""
    async with loopback(states(OK)) as server, connections(server) as pool:
        (await ask(await dial(pool, server))).release()
        assert pool.kept == 1
        writer = server.exchanges[0].writer
        if unasked:
            writer.write(unasked)
        else:
            writer.close()
        await settle(0, pool)

        assert (pool.kept, take(pool, server)) == (0, None)


async def test_an_answer_before_the_end_of_the_request_closes_the_connection() -> None:
    """RFC 9112 section 9.3: an unsent part cannot be distinguished from the next request."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(body(b"too large", status=413))
        await done.wait()
        writer.close()

    done = asyncio.Event()
    listening = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1024)
    server = Loopback(port=listening.sockets[0].getsockname()[1])
    async with listening, connections(server) as pool:
        with anyio.fail_after(20):
            early = await ask(await dial(pool, server), content=b"x" * (64 << 20))
            assert (early.status, await early.readany()) == (413, b"too large")
            early.release()
            assert pool.kept == 0
            await settle(0, pool)
            done.set()


async def test_unread_bytes_stay_with_the_peer() -> None:
    """Ours: an answer that is not read is not read into memory either."""
    sent = 0

    async def flood(exchange: Exchange) -> bool:
        nonlocal sent
        await exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while sent < 100_000_000:
            await exchange.write(b"x" * 100_000)
            sent += 100_000
        return True

    async with loopback(flood) as server, connections(server) as pool:
        answer = await ask(await dial(pool, server))
        with anyio.fail_after(60):
            before = -1
            while sent != before:
                before = sent
                await asyncio.sleep(0.05)  # until the server stops, its socket full
            assert sent < 90_000_000
            assert answer.size <= 512 << 10
            taken = 0
            while not answer.at_eof():
                taken += len(await answer.readany())
            answer.release()

        assert (taken, pool.kept) == (100_000_000, 1)


async def test_cancellation_at_any_point_loses_nothing_and_mixes_nothing() -> None:
    """Ours: a disconnect, at any point, leaves no connection, no place, and no answer for another caller (R19)."""
    random = Random(11)

    async def answer(exchange: Exchange) -> bool:
        own = exchange.line.rpartition("/")[2].encode()
        raw = body(own * 50) if random.random() < 0.5 else _chunked(own * 50)
        at = random.randrange(len(raw))
        await exchange.write(raw[:at])
        await asyncio.sleep(random.choice([0, 0, 0.001]))  # answers come in pieces, some of them late
        await exchange.write(raw[at:])
        return random.random() < 0.9

    async def call(number: int) -> bool:
        try:
            read = await upstream.send(server.get(f"/{number}"))
        except UpstreamError:
            return False
        assert read.body == str(number).encode() * 50
        return True

    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority], rules=PATIENT) as upstream:
        assert upstream._open is not None  # pyright: ignore[reportPrivateUsage]
        pool = upstream._open[1].pool  # pyright: ignore[reportPrivateUsage]
        answered = 0
        with anyio.fail_after(60):
            for round_ in range(60):
                tasks = [asyncio.create_task(call(round_ * 10 + number)) for number in range(10)]
                for task in random.sample(tasks, 6):
                    await asyncio.sleep(random.choice([0, 0, 0, 0.0005, 0.002]))  # any point of its way
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                assert {type(one) for one in ended} <= {bool, asyncio.CancelledError}
                answered += sum(one is True for one in ended)
            while len(pool) != pool.kept:
                await anyio.lowlevel.checkpoint()

        assert answered > 200


def _chunked(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)


async def _begin(exchange: Exchange) -> bool:
    """Half an answer, and then nothing until the other side is gone."""
    await exchange.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
    await exchange.reader.read()
    return False


async def test_a_pool_that_closes_ends_running_requests() -> None:
    """Ours: no caller waits any longer, and nothing stays open."""
    async with loopback(_begin) as server:
        async with UpstreamClient(egress_allow=[server.authority], rules=PATIENT) as upstream:
            call = asyncio.create_task(upstream.send(server.get(idempotent=False)))
            with anyio.fail_after(20):
                await server.arrived.wait()
        with anyio.fail_after(20):
            with pytest.raises(UpstreamError):
                await call
            await server.hung_up.wait()


async def test_half_a_body_does_not_become_a_whole_one_by_the_end_of_its_pool() -> None:
    """RFC 9112 section 8: an end that the other side did not make is no end of the body."""
    async with loopback(_begin) as server, connections(server) as pool:
        answer = await ask(await dial(pool, server))
        half = await answer.readany()
        await pool.close()

        assert half == b"half"
        with pytest.raises(BrokenOff):
            await answer.readany()


async def test_a_broken_answer_costs_other_calls_no_connection() -> None:
    """Ours: the other calls under way at the same upstream go on."""

    async def answer(exchange: Exchange) -> bool:
        await exchange.write(b"garbage\r\n\r\n" if exchange.line.endswith("/bad") else OK)
        return True

    async with loopback(answer) as server, UpstreamClient(egress_allow=[server.authority], rules=PATIENT) as upstream:
        for _ in range(3):
            bad, good = await asyncio.gather(
                upstream.send(server.get("/bad")), upstream.send(replace(server.get("/good"))), return_exceptions=True
            )
            assert isinstance(bad, UpstreamAnswerBroken)
            assert not isinstance(good, BaseException)
            assert good.body == b"{}"
