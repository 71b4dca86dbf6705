"""Joined writes: the parts of a response that leave together, over the event loop that flushes it."""

import asyncio

import pytest
from anyio.lowlevel import checkpoint

from gateway.app.server.http_protocol import JoinedWrites


class _Transport(asyncio.Transport):
    """Records what is written, and the end."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append(b"(closed)")


async def test_a_head_leaves_with_the_first_part_of_its_body() -> None:
    """Ours: a proxy never has a head without what follows it at once (SRV-1)."""
    transport = _Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop(), transport.close)

    joined.write(b"head ")
    joined.write(b"body")
    joined.write(b"more")
    await checkpoint()

    assert transport.written == [b"head body", b"more"]


async def test_a_head_alone_leaves_in_the_next_turn_of_the_loop() -> None:
    """Ours: a stream begins before its first event (SRV-1)."""
    transport = _Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop(), transport.close)

    joined.write(b"head ")
    assert transport.written == []
    await checkpoint()
    joined.write(b"event")

    assert transport.written == [b"head ", b"event"]


@pytest.mark.parametrize("turns", [0, 1])
async def test_a_head_is_written_before_the_connection_closes(turns: int) -> None:
    """Ours: closing loses nothing, and writes nothing twice (SRV-1)."""
    transport = _Transport()
    joined = JoinedWrites(transport, asyncio.get_running_loop(), transport.close)

    joined.write(b"head")
    for _ in range(turns):
        await checkpoint()
    joined.close()
    await checkpoint()

    assert transport.written == [b"head", b"(closed)"]
