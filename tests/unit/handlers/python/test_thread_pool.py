"""Where plain functions run: so many at a time, and never in the way of the gateway's end."""

import threading

import anyio
import pytest

from gateway.domain.primitives import Family
from gateway.errors import HandlerFailed
from gateway.handlers.python.context import Context
from gateway.handlers.python.thread_pool import ThreadPool
from gateway.upstream.client import UpstreamClient
from tests.support.household import Household
from tests.support.peers import TalkingPeer


async def test_only_so_many_functions_run_at_a_time() -> None:
    """Ours: threads are bounded; who finds no place waits for one."""
    threads, gate, running = ThreadPool(8), threading.Event(), threading.Semaphore(0)
    answers: list[int] = []

    def works() -> int:
        running.release()
        gate.wait()
        return 1

    async def wait() -> None:
        answers.append(await threads.run("a", works))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(wait)
            for _ in range(2):
                await anyio.to_thread.run_sync(running.acquire)
            assert threads.busy == 2
            gate.set()

    assert (answers, threads.busy) == ([1] * 5, 0)


async def test_a_function_that_is_given_up_keeps_its_place_until_it_returns() -> None:
    """Ours: hanging functions use up the places, not the machine (CAL-4)."""
    threads, gate = ThreadPool(1), threading.Event()

    with anyio.move_on_after(0.01):
        await threads.run("a", gate.wait)
    with anyio.move_on_after(0.01) as waited:
        await threads.run("a", lambda: None)

    assert (threads.busy, waited.cancelled_caught) == (1, True)
    gate.set()
    with anyio.fail_after(30):
        assert await threads.run("a", lambda: "free") == "free"


async def test_threads_do_not_keep_the_gateway_from_ending() -> None:
    """Ours: a function that never returns does not hold up a stop (SRV-3)."""
    daemons: list[bool] = []

    await ThreadPool().run("a", lambda: daemons.append(threading.current_thread().daemon))

    assert daemons == [True]


async def test_a_function_whose_call_is_over_waits_for_nothing() -> None:
    """Ours: what it still wants of the gateway is refused (CAL-4)."""
    house, seen = Household(UpstreamClient()), threading.Event()
    raised: list[Exception] = []

    class Slow(TalkingPeer):
        async def log(self, level: object, data: object, logger: str | None = None) -> None:
            await anyio.sleep_forever()

    def works(context: Context) -> str:
        for _ in range(2):
            try:
                context.wait(context.log("info", "x"))
            except HandlerFailed as error:
                raised.append(error)
        seen.set()
        return ""

    house.has_code(Family.TOOL, "works", works, timeout_s=0.01)

    with anyio.fail_after(30):
        await house.call("works", peer=Slow())
        await anyio.to_thread.run_sync(seen.wait)

    assert len(raised) == 2


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(1), KeyboardInterrupt(), StopIteration(), GeneratorExit()]
)
async def test_whatever_a_function_raises_is_an_exception(error: BaseException) -> None:
    """Ours: nothing that a function raises ends the gateway (CAL-4)."""

    def raises() -> None:
        raise error

    with pytest.raises(Exception, match=r"x|raised"):
        await ThreadPool().run("a", raises)
