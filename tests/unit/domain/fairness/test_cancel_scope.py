"""A cancel scope that another task cancels, at any moment of its life."""

import asyncio
from collections.abc import Callable

import anyio
import pytest

from gateway.domain.fairness.cancel_scope import CancelScope


def _is_calm() -> bool:
    """True if no cancellation is left over for the running task."""
    task = asyncio.current_task()
    return task is not None and not task.cancelling()


async def _assert_calm() -> None:
    for _ in range(3):  # a cancellation that was left over would come at the next waits
        await anyio.lowlevel.checkpoint()
    assert _is_calm()


async def test_a_block_that_is_called_off_ends_where_it_waits() -> None:
    """Ours: code behind the block continues as if nothing had been."""
    reached: list[str] = []
    with anyio.fail_after(30), CancelScope() as scope:
        asyncio.get_running_loop().call_soon(scope.cancel)
        await anyio.sleep_forever()
        reached.append("after")

    assert scope.cancelled_caught
    assert reached == []
    await _assert_calm()


async def test_a_block_that_calls_itself_off_ends_at_its_next_wait() -> None:
    """Ours: also one that asks from within."""
    with anyio.fail_after(30), CancelScope() as scope:
        scope.cancel()
        scope.cancel()
        await anyio.sleep_forever()

    assert scope.cancelled_caught
    await _assert_calm()


async def test_a_block_that_ends_before_anything_could_be_done_has_ended() -> None:
    """Ours: no cancellation is left for the next wait."""
    with CancelScope() as scope:
        scope.cancel()

    assert not scope.cancelled_caught
    await _assert_calm()


async def test_a_block_cancelled_before_it_begins_ends_at_its_first_wait() -> None:
    """Ours: a request may be cancelled between its arrival and its work."""
    scope = CancelScope()
    scope.cancel()
    await anyio.lowlevel.checkpoint()
    with anyio.fail_after(30), scope:
        await anyio.sleep_forever()

    assert scope.cancelled_caught
    await _assert_calm()


async def test_a_cancellation_after_the_block_has_no_effect() -> None:
    """Ours: a late cancellation has no effect."""
    with CancelScope() as scope:
        await anyio.lowlevel.checkpoint()
    scope.cancel()

    await _assert_calm()
    assert not scope.cancelled_caught


async def test_an_error_while_leaving_is_not_hidden() -> None:
    """Ours: a block that fails while it is cancelled has failed."""
    scope = CancelScope()
    with anyio.fail_after(30), pytest.raises(ValueError, match="broken"), scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("broken")

    assert not scope.cancelled_caught
    await _assert_calm()


async def test_a_block_that_ignores_its_cancellation_continues() -> None:
    """Ours: it is asked once, like any task."""
    with anyio.fail_after(30), CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            await anyio.lowlevel.checkpoint()

    assert not scope.cancelled_caught
    await _assert_calm()


@pytest.mark.parametrize("is_first", [True, False])
async def test_an_outer_cancellation_ends_the_task(is_first: bool) -> None:
    """Ours: an end from outside is not taken for one that was asked for, whichever comes first."""
    begun, tethers = asyncio.Event(), list[CancelScope]()

    async def serve() -> str:
        with CancelScope() as scope:
            tethers.append(scope)
            begun.set()
            await anyio.sleep_forever()
        return "went on"

    serving = asyncio.create_task(serve())
    await begun.wait()
    asks: list[Callable[[], object]] = [tethers[0].cancel, serving.cancel]
    for ask in asks if is_first else reversed(asks):
        ask()
    with anyio.fail_after(30), pytest.raises(asyncio.CancelledError):
        await serving

    assert not tethers[0].cancelled_caught
