"""Requests of sessions while they are answered: found, cancelled, distinguished, limited."""

from collections.abc import Callable
from contextlib import ExitStack

import anyio
import pytest

from gateway.domain.fairness.cancel_scope import CancelScope
from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, LimitExceeded
from gateway.protocol.http.responses import Body, joined
from gateway.protocol.sessions.limits import MAX_RUNNING
from gateway.protocol.sessions.response_sink import SinkState
from gateway.protocol.sessions.running_requests import NO_RESPONSE, RequestExchange, RequestKey, RunningRequests

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


class _Kept:
    """An outlet that keeps what it is given."""

    def __init__(self) -> None:
        self.scope = CancelScope()
        self.state = SinkState.PLAIN
        self.finished: list[bytes] = []
        self.is_over = False

    async def claim(self) -> None:
        self.state = SinkState.REFUSED
        self.scope.cancel()

    async def defer(self) -> None:
        """Nothing."""

    async def send(self, text: bytes, *, request_id: str = "") -> bool:
        del text, request_id
        return True

    async def detach(self) -> None:
        """Nothing."""

    async def respond(self, text: Body) -> None:
        self.finished.append(joined(text))

    def abandon(self) -> None:
        self.is_over = True


def _turn(
    running: RunningRequests,
    request: bytes = b"1",
    session: str = "s",
    tenant: TenantId = ACME,
    *,
    sink: _Kept | None = None,
) -> RequestExchange:
    key = RequestKey(tenant, session, request)
    return RequestExchange(running, key, sink or _Kept(), spawn=_unused, correlation_id="correlation-1")


def _unused(work: Callable[..., object]) -> None:
    raise AssertionError(work)


async def _done() -> bytes:
    return b"done"


async def test_a_turn_ends_with_the_result_of_its_work() -> None:
    """Ours: it was not cancelled, so nothing is added."""
    sink = _Kept()
    with _turn(RunningRequests(), sink=sink) as exchange:
        await exchange.serve(_done())

    assert sink.finished == [b"done"]
    assert sink.is_over


@pytest.mark.parametrize("how", ["request", "session", "tenant"])
async def test_a_call_ended_by_its_session_is_answered_and_a_cancelled_one_is_not(how: str) -> None:
    """MCP: a cancelled request is not answered; ours: one that the server ends is (SRV-1)."""
    running, sink = RunningRequests(), _Kept()
    answers = sink.finished

    with _turn(running, sink=sink) as exchange:
        async with anyio.create_task_group() as group:
            group.start_soon(exchange.serve, _forever())
            await anyio.lowlevel.checkpoint()
            match how:
                case "request":
                    assert running.cancel(RequestKey(ACME, "s", b"1"))
                case "session":
                    running.end_session(ACME, "s")
                case _:
                    running.end_session(ACME)

    if how == "request":
        assert answers == [NO_RESPONSE]
        return
    assert b'"id":1' in answers[0]
    assert b'"code":-32800' in answers[0]
    assert b'"correlation_id":"correlation-1"' in answers[0]


async def _forever() -> bytes:
    await anyio.sleep_forever()
    return b""


async def test_only_the_named_turn_is_cancelled() -> None:
    """Ours: another id, another session, another tenant are others (TEN-1)."""
    running, sink = RunningRequests(), _Kept()
    with _turn(running, b'"1"', sink=sink) as exchange:
        assert not running.cancel(RequestKey(ACME, "s", b"1"))
        assert not running.cancel(RequestKey(ACME, "other", b'"1"'))
        assert not running.cancel(RequestKey(GLOBEX, "s", b'"1"'))
        running.end_session(GLOBEX, "s")
        running.end_session(ACME, "other")
        await exchange.serve(_done())
    assert sink.finished == [b"done"]
    assert len(running) == 0
    assert not running.cancel(exchange.key)


async def test_an_outer_end_is_notified_and_propagates() -> None:
    """Ours: when the replica ends, the client is notified first, and the cancellation is not swallowed (SRV-3)."""
    sink = _Kept()
    with anyio.CancelScope() as outside:
        outside.cancel()
        await _turn(RunningRequests(), sink=sink).serve(_forever())

    assert outside.cancelled_caught
    assert b"call.replica_lost" in sink.finished[0]


async def test_an_id_in_use_is_refused() -> None:
    """Ours: two running requests of one id cannot be distinguished; 1 and "1" can (SRV-1)."""
    running = RunningRequests()
    with _turn(running):
        with pytest.raises(Conflict), _turn(running):
            pass
        with _turn(running, b'"1"'), _turn(running, session="t"), _turn(running, tenant=GLOBEX):
            assert len(running) == 4
    with _turn(running):
        pass


async def test_an_id_that_another_replica_holds_ends_the_work_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ours: a claim that is refused cancels the work, and the error goes to the caller (SRV-1)."""
    monkeypatch.setattr("gateway.protocol.sessions.running_requests.CLAIM_AFTER_S", 0)
    sink = _Kept()
    async with anyio.create_task_group() as group:
        key = RequestKey(ACME, "s", b"1")
        with (
            RequestExchange(
                RunningRequests(), key, sink, spawn=group.start_soon, correlation_id="correlation-1"
            ) as exchange,
            anyio.fail_after(30),
            pytest.raises(Conflict),
        ):
            await exchange.serve(_forever())

    assert sink.finished == []
    assert sink.is_over


async def test_the_turns_of_one_session_are_limited() -> None:
    """Ours: one session cannot hold any number of requests open (TEN-3)."""
    running = RunningRequests()
    with ExitStack() as stack:
        for number in range(MAX_RUNNING):
            stack.enter_context(_turn(running, str(number).encode()))
        with _turn(running, session="other"):
            pass
        with pytest.raises(LimitExceeded), _turn(running, b"x"):
            pass
    assert len(running) == 0
