"""Bounds of a provider's connection that no socket shows by itself."""

import asyncio
from typing import Any

import pytest

from gateway.web.providers import connection as connections
from gateway.web.providers.connection import CloseCode, ConnectionEnded, ProviderConnection


async def _never(_: Any = None) -> Any:
    await asyncio.get_running_loop().create_future()


async def _ping() -> Any:
    return {"type": "websocket.receive", "text": '{"jsonrpc":"2.0","id":1,"method":"ping"}'}


async def test_messages_that_are_not_sent_are_bounded() -> None:
    """Ours: a full outbox closes the connection (TEN-5)."""
    connection = ProviderConnection(_never, _never)
    for _ in range(4):
        connection.send("x" * 4 * 1024 * 1024)
    assert not connection.is_closing
    connection.send("x")
    assert connection.is_closing


async def test_messages_above_the_rate_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a message beyond the burst is read when the rate allows it (TEN-5)."""
    monkeypatch.setattr(connections, "MESSAGES_BURST", 2.5)
    monkeypatch.setattr(connections, "MESSAGES_PER_S", 0.001)
    connection = ProviderConnection(_ping, _never)
    for _ in range(2):
        await connection.read()
    third = asyncio.ensure_future(connection.read())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not third.done()
    third.cancel()


async def test_a_large_message_counts_like_many() -> None:
    """Ours: parsing is charged by size, so that large messages are as rare as their cost demands (TEN-5)."""

    async def receive() -> Any:
        return {"type": "websocket.receive", "text": '{"jsonrpc":"2.0","method":"' + "x" * 1_000_000 + '"}'}

    connection = ProviderConnection(receive, _never)
    await connection.read()
    second = asyncio.ensure_future(connection.read())
    for _ in range(10):
        await asyncio.sleep(0)
    assert not second.done()
    second.cancel()


async def test_a_message_of_another_server_is_measured_too() -> None:
    """Ours: behind an ASGI server without a limit, the connection has one (TEN-5)."""

    async def receive() -> Any:
        return {"type": "websocket.receive", "text": "x" * (4 * 1024 * 1024 + 1)}

    with pytest.raises(ConnectionEnded) as ended:
        await ProviderConnection(receive, _never).read()
    assert ended.value.code == CloseCode.TOO_BIG
