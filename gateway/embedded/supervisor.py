"""What happens when a server of ours ends by itself: it is started again, and when that does not help the gateway ends.

What such a server has acknowledged is on disk, and whoever uses it connects anew by itself.
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
    """A server that runs, and how it is brought back."""

    child: Child
    revive: Callable[[], Awaitable[None]]


@asynccontextmanager
async def watching(servers: Sequence[Watched]) -> AsyncGenerator[None]:
    """Start again whichever of the servers ends while the block runs; the block is cancelled if that is in vain.

    Raises:
        EmbeddedServerFailed: a server does not come up again, or ends again and again.
    """
    try:
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(_keep, server)
            yield
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        if len(errors.exceptions) == 1:  # the block's own, or ours that has ended it: as if there were no group
            raise errors.exceptions[0] from errors.exceptions[0].__cause__
        raise


async def _keep(server: Watched) -> None:
    ends: list[float] = []
    name = server.child.name
    while True:
        while server.child.is_running:  # noqa: ASYNC110  # a child tells nobody that it ends
            await anyio.sleep(_LOOK_S)
        reason = server.child.failed()
        log.error("embedded_server_ended", server=name, reason=reason.message)
        now = time.monotonic()
        ends = [*(end for end in ends if now - end < _WITHIN_S), now]
        if len(ends) > _AT_MOST:
            raise EmbeddedServerFailed(f"{name} ended {len(ends)} times within a minute. {reason.message}")
        await server.revive()
        log.warning("embedded_server_restarted", server=name, seconds=round(time.monotonic() - now, 3))
