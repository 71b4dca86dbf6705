"""Supervisor of the embedded servers: restarts a server that ends; after too many restarts, the gateway stops.

A restarted server recovers its data: PostgreSQL every commit, Redis its append-only file. Clients have to reconnect.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog

from gateway.embedded.child import Child
from gateway.embedded.limits import CHILD_POLL_S, MAX_RESTARTS, RESTART_WINDOW_S
from gateway.errors import EmbeddedServerFailed

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A running server, and the function that restarts it."""

    child: Child
    revive: Callable[[], Awaitable[None]]


@asynccontextmanager
async def watching(servers: Sequence[Watched]) -> AsyncGenerator[None]:
    """Restart each server that ends while the block runs; if a restart fails, cancel the block.

    Raises:
        EmbeddedServerFailed: a server could not be restarted, or ended a fourth time within 60 s.
    """
    try:
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(_restart_forever, server)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:  # raise the only error (of the block or of a restart) without its group
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        raise


async def _restart_forever(server: Watched) -> None:
    ends: list[float] = []
    name = server.child.name
    while True:
        while server.child.is_running:  # noqa: ASYNC110  # the end of a child causes no notification
            await anyio.sleep(CHILD_POLL_S)
        reason = server.child.failed()
        log.error("embedded_server_ended", server=name, reason=reason.message)
        now = time.monotonic()
        ends = [*(end for end in ends if now - end < RESTART_WINDOW_S), now]
        if len(ends) > MAX_RESTARTS:
            raise EmbeddedServerFailed(f"{name} ended {len(ends)} times within a minute. {reason.message}")
        await server.revive()
        log.warning("embedded_server_restarted", server=name, seconds=round(time.monotonic() - now, 3))
