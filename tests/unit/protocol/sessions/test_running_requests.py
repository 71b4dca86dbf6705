"""Requests of sessions while they are answered: found, cancelled, told apart, limited."""

from contextlib import ExitStack

import anyio
import pytest

from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, LimitExceeded
from gateway.protocol.sessions.running_requests import (
    MAX_RUNNING,
    NO_ANSWER,
    RequestKey,
    RunningRequest,
    RunningRequests,
)

ACME, GLOBEX = TenantId("ten_acme"), TenantId("ten_globex")


class _Kept:
    """An outlet that keeps what it is given."""

    def __init__(self) -> None:
        self.finished: list[bytes] = []

    async def send(self, text: bytes, *, question: str = "") -> bool:
        del text, question
        return True

    async def detach(self) -> None:
        """Nothing."""

    async def respond(self, text: bytes) -> None:
        self.finished.append(text)


def _turn(request: bytes = b"1", session: str = "s", tenant: TenantId = ACME) -> RunningRequest:
    return RunningRequest(RequestKey(tenant, session, request), "correlation-1")


async def _done() -> bytes:
    return b"done"


async def test_a_turn_ends_with_what_its_work_makes() -> None:
    """Ours: nobody cancelled it, so nothing is added."""
    assert await _turn().run(_done, _Kept()) == b"done"


@pytest.mark.parametrize("how", ["request", "session", "tenant"])
async def test_a_turn_that_ends_with_its_session_says_so_and_a_cancelled_one_has_no_answer(how: str) -> None:
    """MCP: a cancelled request is not answered; ours: one that the server ends is (SRV-1)."""
    running, request_run = RunningRequests(), _turn()
    answers: list[bytes] = []

    async def run() -> None:
        answers.append(await request_run.run(_forever, _Kept()))

    with running.track(request_run):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await anyio.lowlevel.checkpoint()
            match how:
                case "request":
                    assert running.cancel(RequestKey(ACME, "s", b"1"))
                case "session":
                    running.end_session(ACME, "s")
                case _:
                    running.end_session(ACME)

    if how == "request":
        assert answers == [NO_ANSWER]
        return
    assert b'"id":1' in answers[0]
    assert b'"code":-32800' in answers[0]
    assert b'"correlation_id":"correlation-1"' in answers[0]


async def _forever() -> bytes:
    await anyio.sleep_forever()
    return b""


async def test_only_the_named_turn_is_cancelled() -> None:
    """Ours: another id, another session, another tenant are others (TEN-1)."""
    running, request_run = RunningRequests(), _turn(b'"1"')
    with running.track(request_run):
        assert not running.cancel(RequestKey(ACME, "s", b"1"))
        assert not running.cancel(RequestKey(ACME, "other", b'"1"'))
        assert not running.cancel(RequestKey(GLOBEX, "s", b'"1"'))
        running.end_session(GLOBEX, "s")
        running.end_session(ACME, "other")
        assert await request_run.run(_done, _Kept()) == b"done"
    assert len(running) == 0
    assert not running.cancel(request_run.of)


async def test_an_end_from_outside_is_told_and_goes_on() -> None:
    """Ours: when the replica ends, the client is told first, and the cancellation is not swallowed (SRV-3)."""
    sink = _Kept()
    with anyio.CancelScope() as outside:
        outside.cancel()
        await _turn().run(_forever, sink)

    assert outside.cancelled_caught
    assert b"call.replica_lost" in sink.finished[0]


async def test_an_id_in_use_is_refused() -> None:
    """Ours: two running requests of one id cannot be told apart; 1 and "1" can (SRV-1)."""
    running = RunningRequests()
    with running.track(_turn()):
        with pytest.raises(Conflict), running.track(_turn()):
            pass
        with running.track(_turn(b'"1"')), running.track(_turn(session="t")), running.track(_turn(tenant=GLOBEX)):
            assert len(running) == 4
    with running.track(_turn()):
        pass


async def test_the_turns_of_one_session_are_limited() -> None:
    """Ours: one session cannot hold any number of requests open (TEN-3)."""
    running = RunningRequests()
    with ExitStack() as stack:
        for number in range(MAX_RUNNING):
            stack.enter_context(running.track(_turn(str(number).encode())))
        with running.track(_turn(session="other")):
            pass
        with pytest.raises(LimitExceeded), running.track(_turn(b"x")):
            pass
    assert len(running) == 0
