"""Clean-up at a server, such as closing a session: bounded in time, not interrupted by a cancellation."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import structlog

from gateway.errors import GatewayError
from gateway.upstream.live.mcp.limits import MAX_CLEAN_UP_S

log = structlog.get_logger(__name__)


async def clean_up(work: Callable[..., Awaitable[Any]], *arguments: object) -> None:
    """Run `work` for at most 4 s, also while the caller's scope is cancelled; its failure is only logged."""
    try:
        with anyio.CancelScope(shield=True), anyio.fail_after(MAX_CLEAN_UP_S):
            await work(*arguments)
    except (GatewayError, TimeoutError) as error:
        log.info("live_session_not_closed", fault=str(error))
    except Exception:
        log.exception("live_session_not_closed")
