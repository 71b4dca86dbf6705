"""Threads: bounded by kind and shared by tenants, reused, and never in the way of the gateway's end."""

import threading

import anyio
import pytest

from gateway.domain.fairness.large_work import run_large
from gateway.domain.fairness.limits import MAX_INLINE_BYTES
from gateway.domain.fairness.thread_kinds import HANDLERS, THREAD_KINDS
from gateway.domain.fairness.threads import ThreadKind, ThreadPool, run_in_thread, thread_pool
from gateway.domain.identifiers import TenantId
from gateway.domain.primitives import Family
from gateway.errors import HandlerFailed
from gateway.handlers.python.context import Context
from gateway.upstream.client import UpstreamClient
from tests.support.handler_bench import HandlerBench
from tests.support.peers import TalkingPeer


def _kind(threads: int) -> ThreadKind:
    return ThreadKind(name="threads", threads=threads)


async def test_only_so_many_functions_run_at_a_time() -> None:
    """Ours: threads are bounded; who finds no place waits for one."""
    threads, gate, running = ThreadPool(_kind(8)), threading.Event(), threading.Semaphore(0)
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
            assert threads.slot_pool.busy == 2
            gate.set()

    assert (answers, threads.slot_pool.busy) == ([1] * 5, 0)


async def test_a_function_that_timed_out_keeps_its_place_until_it_returns() -> None:
    """Ours: hanging functions use up the places, not the machine (CAL-4)."""
    threads, gate = ThreadPool(_kind(1)), threading.Event()

    with anyio.move_on_after(0.01):
        await threads.run("a", gate.wait)
    with anyio.move_on_after(0.01) as waited:
        await threads.run("a", lambda: None)

    assert (threads.slot_pool.busy, waited.cancelled_caught) == (1, True)
    gate.set()
    with anyio.fail_after(30):
        assert await threads.run("a", lambda: "free") == "free"


async def test_threads_do_not_keep_the_gateway_from_ending() -> None:
    """Ours: a function that never returns does not hold up a stop (SRV-3)."""
    daemons: list[bool] = []

    await run_in_thread(HANDLERS, "a", lambda: daemons.append(threading.current_thread().daemon))

    assert daemons == [True]


async def test_threads_are_reused_and_end_with_their_pool() -> None:
    """Ours: threads are started when they are needed, and none outlives its pool (ISO-3)."""
    before, used = threading.active_count(), set[threading.Thread]()
    pool = ThreadPool(_kind(8))

    with anyio.fail_after(30):
        for _ in range(20):
            await pool.run("a", lambda: used.add(threading.current_thread()))
        assert len(used) == 1
        del pool
        while threading.active_count() > before:  # noqa: ASYNC110  # the end of a thread has no event
            await anyio.sleep(0.001)


async def test_every_kind_is_watched_and_has_threads_of_its_own() -> None:
    """Ours: a tenant that fills its share of every kind leaves the rest to others, and metrics show it (ISO-3)."""
    gate = threading.Event()
    assert len({kind.name for kind in THREAD_KINDS}) == len(THREAD_KINDS)
    async with anyio.create_task_group() as group:
        for kind in THREAD_KINDS:
            assert (kind.busy, kind.refused) == (0, 0)
            for _ in range(kind.threads):
                group.start_soon(run_in_thread, kind, "a", gate.wait)
        await anyio.wait_all_tasks_blocked()
        for kind in THREAD_KINDS:
            share = max(1, kind.threads // 4)
            assert (kind.busy, thread_pool(kind).slot_pool.held("a")) == (share, share)
        gate.set()


async def test_large_work_runs_in_a_thread_and_small_work_does_not() -> None:
    """Ours: a small result costs no thread; a large one holds up neither the event loop nor other tenants (ISO-2)."""
    own = threading.get_ident()

    assert await run_large(TenantId("ten_a"), MAX_INLINE_BYTES, threading.get_ident) == own
    assert await run_large(TenantId("ten_a"), MAX_INLINE_BYTES + 1, threading.get_ident) != own


async def test_a_function_whose_call_has_ended_waits_for_nothing() -> None:
    """Ours: its further requests to the gateway are refused (CAL-4)."""
    house, seen = HandlerBench(UpstreamClient()), threading.Event()
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
async def test_every_error_of_a_function_is_an_exception(error: BaseException) -> None:
    """Ours: nothing that a function raises ends the gateway (CAL-4)."""

    def raises() -> None:
        raise error

    with pytest.raises(Exception, match=r"x|raised"):
        await run_in_thread(HANDLERS, "a", raises)
