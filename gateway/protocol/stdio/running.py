"""Runs a server on claimed standard streams until its client closes them or a signal arrives."""

import signal
from collections.abc import Awaitable, Callable

import anyio

from gateway.protocol.limits import MAX_BYTES
from gateway.protocol.stdio.streams import ClaimedStreams, StdioStreams

Serve = Callable[[StdioStreams], Awaitable[None]]


async def serve_streams(claimed: ClaimedStreams, serve: Serve, *, limit: int = MAX_BYTES) -> None:
    """Serve until `serve` returns, or SIGTERM or SIGINT cancels it; a line may have `limit` bytes."""
    async with anyio.create_task_group() as group, StdioStreams(claimed, limit=limit) as streams:
        group.start_soon(_cancel_on_signal, group.cancel_scope)
        await serve(streams)
        group.cancel_scope.cancel()


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
