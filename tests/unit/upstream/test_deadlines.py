"""One timer that ends calls which ran too long."""

import asyncio

import anyio
import anyio.lowlevel
import pytest

from gateway.upstream.deadlines import Deadlines


async def hang(deadlines: Deadlines, *, first_s: float, total_s: float = 60) -> str:
    """A call that waits without end and records its outcome."""
    deadline = deadlines.open(asyncio.get_running_loop(), first_s=first_s, total_s=total_s)
    try:
        await anyio.sleep_forever()
    except asyncio.CancelledError:
        if deadline.withdraw():
            return "expired"
        raise
    finally:
        deadlines.close(deadline)
    raise AssertionError


async def test_a_call_past_its_deadline_ends_and_its_task_lives_on() -> None:
    """Ours: a timeout is an answer of the call, not a cancellation of its caller."""
    deadlines = Deadlines(0.005)

    with anyio.fail_after(30):
        assert await hang(deadlines, first_s=0.01) == "expired"
        assert await hang(deadlines, first_s=60, total_s=0.01) == "expired"
        await anyio.lowlevel.checkpoint()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_cancelled_call_stays_cancelled_even_when_it_expires_as_well() -> None:
    """Ours: our own interruption never swallows the caller's."""
    deadlines = Deadlines(0.001)
    task = asyncio.create_task(hang(deadlines, first_s=60))
    await anyio.lowlevel.checkpoint()

    (deadline,) = deadlines._running  # pyright: ignore[reportPrivateUsage]  # both cancellations in one loop turn
    deadline.expire()
    task.cancel()

    with anyio.fail_after(30), pytest.raises(asyncio.CancelledError):
        await task


async def test_the_timer_rests_while_nothing_runs() -> None:
    """Ours: an idle gateway is not woken."""
    deadlines = Deadlines(0.001)

    with anyio.fail_after(30):
        await hang(deadlines, first_s=0.002)
        while deadlines._timer is not None:  # pyright: ignore[reportPrivateUsage]  # the only way to see it rest
            await anyio.lowlevel.checkpoint()


async def test_progress_moves_the_deadline_but_not_past_the_last() -> None:
    """Ours: a call that keeps sending is still bounded as a whole."""
    deadlines = Deadlines(1)
    loop = asyncio.get_running_loop()
    now = loop.time()
    deadline = deadlines.open(loop, first_s=5, total_s=10)
    deadlines.stop()

    assert now + 4 < deadline.until < now + 6
    deadline.allow(now + 8)
    assert deadline.until == now + 8
    deadline.allow(now + 100)
    assert deadline.until == deadline.last
