"""A block that is cancelled when its client disconnects."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest
from starlette.types import Message

from gateway.protocol.http.cancellation import CancelOnDisconnect, DisconnectWatch


class _Client:
    """A client that may disconnect, and the watcher that notices it."""

    def __init__(self) -> None:
        self.gone = anyio.Event()
        self.looking: list[asyncio.Task[None]] = []

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await work()

        self.looking.append(asyncio.create_task(run()))


@pytest.fixture(autouse=True)
def _look_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.protocol.http.cancellation.WATCH_AFTER_S", 0)


@pytest.fixture
def client() -> _Client:
    return _Client()


async def test_a_disconnect_cancels_the_work_for_the_client(client: _Client) -> None:
    """2026-07-28, cancellation: closing the connection ends the request; what comes behind the block still runs."""
    with anyio.fail_after(30), DisconnectWatch(client.spawn).scope(client.receive) as disconnect:
        client.gone.set()
        await anyio.sleep_forever()

    assert disconnect.cancelled_caught
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()
    await anyio.lowlevel.checkpoint()


async def test_a_connected_client_gets_the_result_of_the_block(client: _Client) -> None:
    """Ours: a later disconnect misses nothing, and nothing is cancelled any more."""
    with DisconnectWatch(client.spawn).scope(client.receive) as disconnect:
        while not client.looking:
            await anyio.lowlevel.checkpoint()
    client.gone.set()
    with anyio.fail_after(30):
        await asyncio.gather(*client.looking)

    assert not disconnect.cancelled_caught
    await anyio.lowlevel.checkpoint()


async def test_an_error_of_the_block_is_not_hidden(client: _Client) -> None:
    """Ours: a block that fails while it is cancelled has failed."""
    with (
        anyio.fail_after(30),
        pytest.raises(ValueError, match="broken"),
        DisconnectWatch(client.spawn).scope(client.receive) as disconnect,
    ):
        client.gone.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise ValueError("broken")

    assert not disconnect.cancelled_caught


async def test_an_outer_cancellation_propagates(client: _Client) -> None:
    """Ours: the end of the replica ends the block, and it does not count as a disconnect of the client."""
    begun = anyio.Event()
    leashes: list[CancelOnDisconnect] = []

    async def serve() -> None:
        with DisconnectWatch(client.spawn).scope(client.receive) as disconnect:
            leashes.append(disconnect)
            begun.set()
            await anyio.sleep_forever()

    serving = asyncio.create_task(serve())
    with anyio.fail_after(30):
        await begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    for looking in client.looking:
        looking.cancel()

    assert not leashes[0].cancelled_caught
