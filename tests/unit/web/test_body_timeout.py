"""Time limit of a body."""

from collections.abc import Awaitable, Generator
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from starlette.requests import ClientDisconnect
from starlette.types import Message

from gateway.web.bodies import read_body
from gateway.web.body_timeout import BodySweep, PacedBody, receive_within
from gateway.web.edge import EdgeLimits


async def test_a_message_that_is_there_is_given_at_once() -> None:
    """Ours: a complete body never waits for a clock."""

    async def receive() -> Message:
        return {"type": "http.request"}

    assert await receive_within(receive, 0) == {"type": "http.request"}


async def test_a_message_that_comes_in_time_is_given() -> None:
    """Ours: a message is given after any number of steps."""

    async def receive() -> Message:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        return {"type": "http.request"}

    assert await receive_within(receive, 5) == {"type": "http.request"}


async def test_an_error_while_waiting_comes_through() -> None:
    """Ours: an error below is not hidden, before or after the first step."""

    async def at_once() -> Message:
        raise ConnectionResetError

    async def later() -> Message:
        await anyio.lowlevel.checkpoint()
        raise ConnectionResetError

    for receive in (at_once, later):
        with pytest.raises(ConnectionResetError):
            await receive_within(receive, 5)


async def test_a_receive_that_is_no_coroutine_works() -> None:
    """ASGI: `receive` returns an awaitable, of whatever kind."""

    class Ready:
        def __await__(self) -> Generator[Any, Any, Message]:
            yield from ()
            return {"type": "http.request"}

    def receive() -> Awaitable[Message]:
        return Ready()

    assert await receive_within(receive, 5) == {"type": "http.request"}


async def test_a_receive_may_catch_its_cancellation() -> None:
    """Ours: a cancellation reaches the code that waits, which may clean up with awaits of its own."""
    cleaned = anyio.Event()

    async def receive() -> Message:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
                cleaned.set()
        raise AssertionError

    with pytest.raises(TimeoutError):
        await receive_within(receive, 0.01)
    assert cleaned.is_set()


async def test_a_body_in_pace_is_passed_on_without_a_clock_afterwards() -> None:
    """Ours: a stream may wait for its client's disconnect for as long as it likes."""
    messages: list[Message] = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
    ]
    gone = anyio.Event()

    async def receive() -> Message:
        if messages:
            return messages.pop(0)
        await gone.wait()
        return {"type": "http.disconnect"}

    async def never() -> None:
        raise AssertionError

    paced = PacedBody(receive, EdgeLimits(body_s=0.05, body_grace_s=0.05), never, BodySweep())
    assert [(await paced())["body"] for _ in range(2)] == [b"a", b"b"]
    async with anyio.create_task_group() as tasks:

        async def end() -> None:
            await anyio.sleep(0.1)
            gone.set()

        tasks.start_soon(end)
        assert (await paced())["type"] == "http.disconnect"


async def test_a_paced_body_is_read_like_any_other() -> None:
    """Ours: the reader of a body and the edge in front of it agree on who holds the clock."""

    async def slowly() -> Message:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def give_up() -> None: ...

    paced = PacedBody(slowly, EdgeLimits(body_s=0.1), give_up, BodySweep())
    with anyio.fail_after(30), pytest.raises(ClientDisconnect):
        await read_body(paced, limit=10_000, deadline=30)


@pytest.mark.parametrize(
    "limits",
    [EdgeLimits(body_s=0.1, body_grace_s=10), EdgeLimits(body_s=10, body_grace_s=0.1, body_bytes_per_s=1_000_000)],
)
async def test_a_slow_body_times_out(limits: EdgeLimits) -> None:
    """Ours: neither the whole time nor the least speed can be stretched by sending a byte now and then."""
    given_up = 0

    async def receive() -> Message:
        await anyio.sleep(0.01)
        return {"type": "http.request", "body": b"a", "more_body": True}

    async def give_up() -> None:
        nonlocal given_up
        given_up += 1

    paced = PacedBody(receive, limits, give_up, BodySweep())
    with anyio.fail_after(30):
        while (await paced())["type"] != "http.disconnect":
            pass

    assert (await paced())["type"] == "http.disconnect"
    assert given_up == 1


async def test_a_body_comes_whole_from_every_awaitable() -> None:
    """Ours: an awaitable that is stepped by hand at first is awaited to its end, errors and cancellation included."""
    arrived = anyio.Event()

    class Later:
        def __await__(self) -> Generator[Any, Any, Message]:
            for _ in range(3):
                yield from anyio.lowlevel.checkpoint().__await__()
            arrived.set()
            return {"type": "http.request", "body": b"here", "more_body": False}

    async def broken() -> Message:
        await anyio.lowlevel.checkpoint()
        raise ConnectionResetError

    async def never() -> Message:
        try:
            await anyio.sleep_forever()
        finally:
            arrived.set()
        raise AssertionError

    assert (await PacedBody(Later, EdgeLimits(), _nothing, BodySweep())())["body"] == b"here"
    with pytest.raises(ConnectionResetError):
        await PacedBody(broken, EdgeLimits(), _nothing, BodySweep())()
    assert arrived.is_set()
    arrived = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(PacedBody(never, EdgeLimits(), _nothing, BodySweep()))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert arrived.is_set()


async def _nothing() -> None:
    """Sends nothing."""
