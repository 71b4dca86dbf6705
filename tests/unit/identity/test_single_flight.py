"""Lookups that many wait for: one for all, a few at a time, and no waiter is left behind."""

import anyio
import pytest

from gateway.errors import DatabaseUnavailable, Unauthenticated
from gateway.identity.single_flight import SingleFlight


class Lookups:
    """Lookups that end on request of a test."""

    def __init__(self) -> None:
        self.begun = 0
        self.most = 0
        self._running = 0
        self.go_on = anyio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> int:
        self.begun += 1
        self._running += 1
        self.most = max(self.most, self._running)
        try:
            await self.go_on.wait()
        finally:
            self._running -= 1
        if self.failure is not None:
            raise self.failure
        return self.begun


async def _settled() -> None:
    """Until everybody waits for something."""
    await anyio.wait_all_tasks_blocked()


async def test_concurrent_requests_with_one_key_share_a_lookup() -> None:
    """Ours: a hundred first requests of a key are one lookup (TEN-3)."""
    turns, lookups, answers = SingleFlight[str, int](), Lookups(), list[int]()

    async def ask() -> None:
        answers.append(await turns.take("one", lookups))

    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(ask)
        await _settled()
        lookups.go_on.set()

    assert answers == [1] * 100
    assert await turns.take("one", lookups) == 2  # nothing is kept here


async def test_concurrent_requests_with_many_keys_look_up_a_few_at_a_time() -> None:
    """Ours: invented keys do not take every connection (TEN-3, TEN-5)."""
    turns, lookups = SingleFlight[int, int](), Lookups()
    async with anyio.create_task_group() as group:
        for name in range(100):
            group.start_soon(turns.take, name, lookups)
        await _settled()
        assert lookups.begun == 4
        lookups.go_on.set()

    assert (lookups.begun, lookups.most) == (100, 4)


async def test_a_failure_reaches_every_waiter() -> None:
    """Ours: a database that is away is not asked by each of them, nor a wrong key looked up for each."""
    turns, lookups, failed = SingleFlight[str, int](), Lookups(), list[str]()
    lookups.failure = Unauthenticated("no")

    async def ask() -> None:
        with pytest.raises(Unauthenticated):
            await turns.take("one", lookups)
        failed.append("no")

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(ask)
        await _settled()
        lookups.go_on.set()

    assert (len(failed), lookups.begun) == (20, 1)
    lookups.failure = None
    assert await turns.take("one", lookups) == 2


async def test_a_cancelled_waiter_leaves_the_lookup_to_the_next() -> None:
    """Ours: a client that hangs up costs the others nothing."""
    turns, lookups, answers = SingleFlight[str, int](), Lookups(), list[int]()
    scopes = [anyio.CancelScope() for _ in range(3)]

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await turns.take("one", lookups))

    async with anyio.create_task_group() as group:
        for scope in scopes:
            group.start_soon(ask, scope)
            await _settled()
        for scope in scopes[:2]:
            scope.cancel()
            await _settled()
        lookups.go_on.set()

    assert answers == [3]


async def test_a_request_after_a_change_gets_no_older_result() -> None:
    """Ours: a key that is revoked while it is being looked up is good for none who comes afterwards (TEN-2)."""
    turns, before, after = SingleFlight[str, int](), Lookups(), Lookups()
    async with anyio.create_task_group() as group:
        group.start_soon(turns.take, "one", before)
        await _settled()
        turns.forget()
        group.start_soon(turns.take, "one", after)
        await _settled()
        assert (before.begun, after.begun) == (1, 1)
        before.go_on.set()
        await _settled()
        after.go_on.set()


async def test_a_wait_for_a_lookup_slot_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a caller that cannot be looked up in time gets a retry hint (TEN-3)."""
    monkeypatch.setattr("gateway.identity.single_flight.LOOKUP_SLOT_S", 0.01)
    turns, lookups = SingleFlight[int, int](), Lookups()
    async with anyio.create_task_group() as group:
        for name in range(4):
            group.start_soon(turns.take, name, lookups)
        await _settled()
        with pytest.raises(DatabaseUnavailable):
            await turns.take(5, lookups)
        lookups.go_on.set()
