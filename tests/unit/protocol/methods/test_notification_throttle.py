"""Notifications of one call: a burst, the newest of its progress, and the number of dropped log messages."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from gateway.handlers.interfaces import LogLevel
from gateway.protocol.methods.limits import MAX_PER_S
from gateway.protocol.methods.notification_throttle import NotificationThrottle


class _Client:
    """Notifications, in order, with the work beside the call."""

    def __init__(self) -> None:
        self.notified: list[object] = []
        self.notes: list[tuple[LogLevel, object]] = []
        self.received = asyncio.Event()
        self._beside: set[asyncio.Task[None]] = set()
        self.telling = NotificationThrottle(self._spawn, self._note)

    def _spawn(self, work: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            await work()

        task = asyncio.create_task(run())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _note(self, level: LogLevel, data: object) -> None:
        self.notes.append((level, data))
        self.received.set()

    async def progress(self, count: int) -> None:
        async def notify() -> None:
            await asyncio.sleep(0)
            self.notified.append(count)
            self.received.set()

        await self.telling.progress(notify)

    async def log(self, level: LogLevel = "info") -> None:
        async def notify() -> None:
            self.notified.append(level)

        await self.telling.log(level, notify)


async def test_a_burst_is_sent_and_then_the_newest() -> None:
    """Ours: progress that comes too fast is sent by its newest, soon, and not only at the end (TEN-5)."""
    client = _Client()
    for count in range(1000):
        await client.progress(count)
    early = list(client.notified)
    with anyio.fail_after(30):
        while client.notified[-1] != 999:
            client.received.clear()
            await client.received.wait()
    await client.telling.close()

    assert early[:MAX_PER_S] == list(range(MAX_PER_S))
    assert len(early) < 900, "the machine took longer than this test can be"
    assert client.notified == sorted(client.notified, key=_number), "progress went back"
    assert client.notes == []


def _number(value: object) -> int:
    assert isinstance(value, int)
    return value


async def test_held_messages_are_sent_before_the_end() -> None:
    """Ours: a call that ends at once loses no message (TEN-5)."""
    client = _Client()
    for count in range(MAX_PER_S + 100):
        await client.progress(count)
    await client.telling.close()

    assert client.notified[-1] == MAX_PER_S + 99


async def test_dropped_messages_are_counted_in_one_note() -> None:
    """Ours: the note has the most severe level of what was dropped, so that it is wanted where that was (TEN-5)."""
    client = _Client()
    for number in range(500):
        await client.log("error" if number == 400 else "debug")
    await client.telling.close()
    await client.telling.close()

    ((level, reported),) = client.notes
    dropped = 500 - len(client.notified)
    assert 0 < dropped <= 500 - MAX_PER_S
    assert str(reported).startswith(f"{dropped} log messages of this call were dropped")
    assert level == "error"


async def test_the_note_comes_when_it_is_calm() -> None:
    """Ours: a long call that once logged too much reports it long before it ends (TEN-5)."""
    client = _Client()
    for _ in range(200):
        await client.log("warning")
    client.received.clear()
    with anyio.fail_after(30):
        await client.received.wait()

    assert client.notes[0][0] == "warning"
    await client.telling.close()
    assert len(client.notes) == 1


@pytest.mark.parametrize("count", [0, 1, MAX_PER_S])
async def test_messages_within_the_limit_are_sent_unchanged(count: int) -> None:
    """Ours: the limit does not affect a moderate call."""
    client = _Client()
    for number in range(count):
        await client.progress(number)
    await client.telling.close()

    assert client.notified == list(range(count))
    assert client.notes == []
