"""Supervisor of the embedded servers: restarts one that ends by itself; if that does not help, the gateway ends.

Everything that such a server has acknowledged is on disk, and its clients reconnect by themselves.
"""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
import structlog

from gateway.embedded.child import Child
from gateway.errors import EmbeddedServerFailed

log = structlog.get_logger(__name__)

_LOOK_S = 0.25
_AT_MOST = 3
_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A running server, and the function that restarts it."""

    child: Child
    revive: Callable[[], Awaitable[None]]


@asynccontextmanager
async def watching(servers: Sequence[Watched]) -> AsyncGenerator[None]:
    """Restart any of the servers that ends while the block runs; if that fails, the block is cancelled.

    Raises:
        EmbeddedServerFailed: a server does not start again, or ends again and again.
    """
    try:
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(_keep, server)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:  # the block's own error, or ours that ended it: raised as if without a group
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        raise


async def _keep(server: Watched) -> None:
    ends: list[float] = []
    name = server.child.name
    while True:
        while server.child.is_running:  # noqa: ASYNC110  # a child does not notify us when it ends
            await anyio.sleep(_LOOK_S)
        reason = server.child.failed()
        log.error("embedded_server_ended", server=name, reason=reason.message)
        now = time.monotonic()
        ends = [*(end for end in ends if now - end < _WITHIN_S), now]
        if len(ends) > _AT_MOST:
            raise EmbeddedServerFailed(f"{name} ended {len(ends)} times within a minute. {reason.message}")
        await server.revive()
        log.warning("embedded_server_restarted", server=name, seconds=round(time.monotonic() - now, 3))
