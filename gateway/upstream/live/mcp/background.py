"""Short background tasks of an attachment, such as closing a session, each with a time limit."""

import asyncio
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

import structlog

from gateway.errors import GatewayError

log = structlog.get_logger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None]], None]
"""Starts a short background task of an attachment."""

_MAX_TASK_S = 5.0


class Background:
    """Task group for short tasks; leaving the block waits for them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task."""
        task = asyncio.get_running_loop().create_task(run_and_log(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def run_and_log(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine for at most `_MAX_TASK_S`; log a failure."""
    try:
        async with asyncio.timeout(_MAX_TASK_S):
            await work
    except (GatewayError, TimeoutError) as error:
        log.info("live_session_not_closed", fault=str(error))
    except Exception:
        log.exception("live_session_not_closed")
