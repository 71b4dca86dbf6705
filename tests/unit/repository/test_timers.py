"""Timers that a test moves by hand."""

import anyio

from tests.support.timers import Timers


def test_due_timers_run_in_order_and_once() -> None:
    """Ours: also a timer that a due call sets again, if that is due too."""
    timers, called = Timers(), list[str]()
    timers.call_later(3, called.append, "late")

    def early() -> None:
        called.append("early")
        timers.call_later(1, called.append, "again")

    timers.call_later(1, early)
    timers.call_later(2, called.append, "never").cancel()

    timers.advance(2.5)
    assert called == ["early", "again"]
    timers.advance(10)
    assert called == ["early", "again", "late"]


async def test_a_timer_is_waited_for_until_it_runs() -> None:
    """Ours: one of another length, or that is over, is another one."""
    timers, seen = Timers(), list[str]()
    timers.call_later(1, seen.append, "other")
    timers.call_later(2, seen.append, "over").cancel()

    async def wait() -> None:
        await timers.running(2)
        seen.append("running")

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        timers.call_later(2, seen.append, "now")
    assert seen == ["running"]
