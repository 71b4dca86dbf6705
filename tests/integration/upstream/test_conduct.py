"""Behaviour of the pool towards an upstream that is slow, fails or is away, seen from the upstream."""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from gateway.domain.http.requests import UpstreamRequest, UpstreamResponse
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import UpstreamSuspended
from gateway.errors import (
    EgressDenied,
    UpstreamAnswerBroken,
    UpstreamBusy,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from gateway.upstream.bulkhead import BulkheadLimits
from gateway.upstream.client import UpstreamClient
from gateway.upstream.deadlines import Timeouts
from tests.integration.upstream.loopback import OK, Answer, Exchange, Loopback, body, loopback, states

ACME, GLOBEX = TenantId("ten_a"), TenantId("ten_b")
PATIENT = BulkheadLimits(failures=1000)
"""For tests of what is sent again: nothing is left alone."""
SLOW_MACHINE = Timeouts(connect_s=15.0, first_byte_s=15.0, total_s=60.0)
"""A busy machine may need more than three seconds to accept a connection."""


def pool(*servers: Loopback, rules: BulkheadLimits = PATIENT, timeouts: Timeouts = SLOW_MACHINE) -> UpstreamClient:
    """A pool that may dial these servers."""
    return UpstreamClient(egress_allow=[server.authority for server in servers], rules=rules, timeouts=timeouts)


def scheduled(*answers: bytes | None) -> Answer:
    """These answers one after another, then good ones; None closes the connection without any."""
    left: Iterator[bytes | None] = iter(answers)

    async def answer(exchange: Exchange) -> bool:
        raw = next(left, OK)
        if raw is None:
            return False
        await exchange.write(raw)
        return True

    return answer


async def hang(exchange: Exchange) -> bool:
    """Answers nothing and waits for the other side to hang up."""
    await exchange.reader.read()
    return False


def unavailable(*headers: str, status: int = 503) -> bytes:
    """An upstream that responds with unavailability."""
    return body(b"later", *headers, status=status)


async def _send(answer: Answer, **changes: object) -> tuple[Loopback, UpstreamResponse | UpstreamError]:
    """Outcome of one idempotent GET, or of its changed form, and the requests at the upstream."""
    async with loopback(answer) as server, pool(server) as upstream:
        request = replace(server.get(), **changes)
        try:
            with anyio.fail_after(20):
                return server, await upstream.send(request, tenant=ACME)
        except UpstreamError as error:
            return server, error


@pytest.mark.parametrize("status", [502, 503, 504])
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE"])
async def test_an_upstream_that_is_back_in_time_costs_no_call(status: int, method: str) -> None:
    """Ours: a hiccup of the upstream is not the client's, and the request goes out each time as it was built."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
    hiccup = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status
    answers = [hiccup, hiccup, head if method == "HEAD" else OK]
    server, answer = await _send(scheduled(*answers), method=method, body=b"b" if method == "PUT" else None)

    assert isinstance(answer, UpstreamResponse)
    assert answer.status == 200
    assert len(server.exchanges) == 3
    assert len({(one.line, tuple(one.headers), one.body) for one in server.exchanges}) == 1


async def test_a_failing_upstream_is_tried_three_times() -> None:
    """Ours: two repetitions and no more; the client reads the upstream's last message."""
    server, answer = await _send(states(unavailable()))

    assert isinstance(answer, UpstreamResponse)
    assert (answer.status, answer.body, len(server.exchanges)) == (503, b"later", 3)


@pytest.mark.parametrize(
    "answers",
    [
        [unavailable()],
        [unavailable("Retry-After: 0")],
        [unavailable(status=502)],
        [unavailable("Retry-After: 0", status=429)],
        [None],
    ],
)
async def test_a_request_that_is_not_idempotent_arrives_once(answers: Sequence[bytes | None]) -> None:
    """Ours: whatever becomes of it, it is never sent twice (R2)."""
    for method in ("POST", "PATCH", "PUT", "DELETE", "GET"):
        server, _ = await _send(scheduled(*answers, None), method=method, idempotent=False, body=b"once")

        assert [one.body for one in server.exchanges] == [b"once"]


async def test_a_connection_that_closes_before_the_answer_is_tried_again() -> None:
    """Ours: an idempotent request is sent up to three times."""
    server, answer = await _send(scheduled(None, None))
    assert isinstance(answer, UpstreamResponse)
    assert len(server.exchanges) == 3

    server, error = await _send(scheduled(None, None, None, None))
    assert isinstance(error, UpstreamUnreachable)
    assert len(server.exchanges) == 3


async def test_an_answer_that_has_begun_is_not_requested_again() -> None:
    """Ours: a request that breaks inside its answer has run; the client gets that error."""
    server, error = await _send(states(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", keep=False))

    assert isinstance(error, UpstreamUnreachable)
    assert len(server.exchanges) == 1


async def test_a_large_body_goes_out_whole_each_time() -> None:
    """Ours: a repetition sends what the first try sent."""
    content = bytes(range(256)) * 8192
    server, _ = await _send(scheduled(unavailable()), method="PUT", body=content)

    assert [one.body == content for one in server.exchanges] == [True, True]


@pytest.mark.parametrize("raw", [unavailable("Retry-After: 60"), unavailable(status=429), unavailable(status=500)])
async def test_a_long_retry_hint_is_returned(raw: bytes) -> None:
    """Ours: no call waits here for a minute; the hint reaches the client."""
    server, answer = await _send(states(raw))

    assert isinstance(answer, UpstreamResponse)
    assert answer.body == b"later"
    assert len(server.exchanges) == 1


class _Names:
    """A name that leads nowhere at first."""

    def __init__(self, failures: int) -> None:
        self.asked = 0
        self._failures = failures

    async def resolve(self, host: str, port: int) -> list[str]:
        """Nothing so often, then loopback."""
        self.asked += 1
        return [] if self.asked <= self._failures else ["127.0.0.1"]

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_unsent_request_is_sent_later(method: str) -> None:
    """Ours: without a connection nothing has arrived, so any request may be tried again."""
    names = _Names(2)
    async with loopback(states(OK)) as server:
        host = f"late.internal:{server.port}"
        async with UpstreamClient(egress_allow=[host], lookup=names, rules=PATIENT) as upstream:
            answer = await upstream.send(UpstreamRequest(method=method, url=f"http://{host}/", body=b"x"))

    assert answer.status == 200
    assert (names.asked, len(server.exchanges)) == (3, 1)


async def test_repetitions_are_paid_from_a_budget() -> None:
    """Ours: an upstream in trouble gets a tenth more, not three times as much."""
    async with (
        loopback(states(unavailable())) as server,
        pool(server, rules=BulkheadLimits(failures=1000, reserve=4)) as upstream,
    ):
        for _ in range(30):
            await upstream.send(server.get(), tenant=ACME)

    assert 30 + 4 <= len(server.exchanges) <= 30 + 4 + 3 + 2  # a tenth of 30, and some seconds' worth


async def test_nothing_is_repeated_when_there_is_no_time_left() -> None:
    """Ours: repetitions happen within the time of the call."""
    timeouts = Timeouts(total_s=0.9)
    async with loopback(states(unavailable())) as server, pool(server, timeouts=timeouts) as upstream:
        answer = await upstream.send(server.get())

    assert (answer.status, len(server.exchanges)) == (503, 1)


async def test_five_failures_in_a_row_open_the_circuit() -> None:
    """Ours: the sixth call is refused at once, unsent, with a hint; the other tenant's goes on (TEN-5)."""
    async with loopback(scheduled(*[None] * 5)) as server, pool(server, rules=BulkheadLimits()) as upstream:
        request = server.get(method="POST", idempotent=False)
        for _ in range(5):
            with pytest.raises(UpstreamUnreachable):
                await upstream.send(request, tenant=ACME)
        with pytest.raises(UpstreamSuspended) as caught:
            await upstream.send(request, tenant=ACME)
        assert len(server.exchanges) == 5
        assert caught.value.retry_after_s is not None
        assert 1 <= caught.value.retry_after_s <= 30
        assert server.authority not in str(caught.value)
        for tenant in (GLOBEX, None):
            assert (await upstream.send(request, tenant=tenant)).status == 200


@pytest.mark.parametrize("raw", [b"", unavailable(), unavailable(status=522), b"never"])
async def test_every_sign_of_unavailability_counts(raw: bytes) -> None:
    """Ours: silence, a closed connection and the statuses of proxies count; in between nothing else came."""

    async def answer(exchange: Exchange) -> bool:
        if raw == b"never":
            return await hang(exchange)
        await exchange.write(raw)
        return bool(raw)

    timeouts = Timeouts(first_byte_s=0.02, connect_s=0.2)
    async with (
        loopback(answer) as server,
        pool(server, rules=BulkheadLimits(failures=3), timeouts=timeouts) as upstream,
    ):
        for _ in range(3):
            with contextlib.suppress(UpstreamTimeout, UpstreamUnreachable):
                await upstream.send(server.get(method="POST", idempotent=False))
        with pytest.raises(UpstreamSuspended):
            await upstream.send(server.get())


@pytest.mark.parametrize(
    "raw", [body(b"", status=500), body(b"", status=404), body(b"", status=429), b"garbage\r\n\r\n"]
)
async def test_an_upstream_that_answers_keeps_its_circuit_closed(raw: bytes) -> None:
    """Ours: an operation that is broken does not shut the others of its upstream out."""
    async with loopback(states(raw)) as server, pool(server, rules=BulkheadLimits(failures=2)) as upstream:
        for _ in range(6):
            with contextlib.suppress(UpstreamAnswerBroken):
                await upstream.send(server.get(method="POST", idempotent=False))

    assert len(server.exchanges) == 6


async def test_a_refusal_of_ours_is_not_the_upstreams() -> None:
    """Ours: a refusal before the dial is no evidence about the upstream."""
    async with UpstreamClient(rules=BulkheadLimits(failures=1)) as upstream:
        for _ in range(4):
            with pytest.raises(EgressDenied):
                await upstream.send(UpstreamRequest(method="GET", url="http://127.0.0.1:9/"))


async def test_an_upstream_that_is_back_is_used_again_after_its_rest() -> None:
    """Ours: one call finds out, and then all go through."""
    rules = BulkheadLimits(failures=1, rest_s=0)
    async with loopback(scheduled(None)) as server, pool(server, rules=rules) as upstream:
        with capture_logs() as lines:
            with pytest.raises(UpstreamUnreachable):
                await upstream.send(server.get(method="POST", idempotent=False), tenant=ACME)
            for _ in range(3):
                assert (await upstream.send(server.get(), tenant=ACME)).status == 200

    assert [line["event"] for line in lines] == ["upstream_suspended", "upstream_resumed"]
    assert {(line["tenant_id"], line["upstream"]) for line in lines} == {(ACME, f"http://{server.authority}")}


async def test_a_slow_upstream_holds_its_own_slots_only() -> None:
    """Ours: 64 calls of one tenant hang; others, at that upstream and elsewhere, do not notice (R9)."""
    gate = asyncio.Event()

    async def answer(exchange: Exchange) -> bool:
        if exchange.line.endswith("/slow"):
            await gate.wait()
        await exchange.write(OK)
        return True

    ended: list[int | str] = []
    async with (
        loopback(answer) as slow,
        loopback(states(OK)) as other,
        pool(slow, other, rules=BulkheadLimits(wait_s=60, waiting=16)) as upstream,
        anyio.create_task_group() as group,
    ):

        async def call() -> None:
            try:
                ended.append((await upstream.send(slow.get("/slow"), tenant=ACME)).status)
            except UpstreamBusy as error:
                ended.append(error.code)

        for _ in range(64):
            group.start_soon(call)
        with anyio.fail_after(20):
            while len(ended) < 16 or slow.connections < 32:
                await anyio.lowlevel.checkpoint()
        assert ended == ["upstream.busy"] * 16
        with anyio.fail_after(10):
            for _ in range(50):
                await upstream.send(slow.get("/fast"), tenant=GLOBEX)
                await upstream.send(other.get("/"), tenant=ACME)
        assert len([one for one in slow.exchanges if one.line == "GET /slow"]) == 32
        gate.set()
    assert ended == ["upstream.busy"] * 16 + [200] * 48


async def test_calls_that_are_cancelled_leave_their_places() -> None:
    """Ours: a disconnect, during a request or a wait, takes nothing from others (R19)."""
    async with loopback(hang) as server, pool(server, rules=BulkheadLimits(at_once=2, wait_s=60)) as upstream:
        with anyio.fail_after(10):
            for _ in range(5):
                async with anyio.create_task_group() as group:
                    for _ in range(6):
                        group.start_soon(lambda: upstream.send(server.get(), tenant=ACME))
                    server.arrived = asyncio.Event()
                    await server.arrived.wait()
                    group.cancel_scope.cancel()

    assert len(server.exchanges) <= 10
