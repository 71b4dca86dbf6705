"""Retries of a database that hangs, and that a process that slept itself blames no server."""

import asyncio
import time

import anyio
import pytest

from gateway.store.database.circuit_breaker import DatabaseBreaker, bounded_wait


def _pass(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.monotonic() + seconds
    monkeypatch.setattr("gateway.store.database.circuit_breaker.time.monotonic", lambda: now)


def test_after_a_timeout_one_caller_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a server that hangs costs one caller at a time its timeout, the others nothing (SRV-4)."""
    silence = DatabaseBreaker(open_s=3)
    assert silence.may_ask()
    assert silence.may_ask()
    _pass(monkeypatch, 10)
    silence.note()
    assert not silence.may_ask()
    _pass(monkeypatch, 20)
    assert [silence.may_ask() for _ in range(3)] == [True, False, False]
    _pass(monkeypatch, 30)
    assert [silence.may_ask() for _ in range(2)] == [True, False]
    silence.end()
    assert [silence.may_ask() for _ in range(2)] == [True, True]


async def test_a_wait_is_bounded() -> None:
    """Ours: a late answer is not awaited."""
    with anyio.fail_after(10):
        with pytest.raises(TimeoutError):
            async with bounded_wait(0.01):
                await anyio.sleep_forever()


async def test_an_answer_in_time_is_awaited() -> None:
    """Ours: and nothing ends later because of it."""
    async with bounded_wait(0.01):
        pass
    await anyio.sleep(0.05)


async def test_a_process_that_slept_waits_once_more() -> None:
    """Ours: a replica that was stopped for a while does not take it for the database's silence (SRV-4)."""
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with bounded_wait(0.2):
        asyncio.get_running_loop().call_later(0.25, answered.set_result, "late, and there")
        time.sleep(0.9)  # noqa: ASYNC251  # the whole process sleeps

        assert await answered == "late, and there"

    with anyio.fail_after(10):
        with pytest.raises(TimeoutError):
            async with bounded_wait(0.01):
                time.sleep(0.6)  # noqa: ASYNC251
                await anyio.sleep_forever()
