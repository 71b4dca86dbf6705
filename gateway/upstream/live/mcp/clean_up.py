"""Clean-up at a server, such as closing a session: bounded in time, not interrupted by a cancellation."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import structlog

from gateway.errors import GatewayError

log = structlog.get_logger(__name__)

_MAX_CLEAN_UP_S: Final = 4.0  # less than the 5 s that a task supervisor waits for its tasks


async def clean_up(work: Callable[..., Awaitable[Any]], *arguments: object) -> None:
    """Run `work` for at most 4 s, also while the caller's scope is cancelled; its failure is only logged."""
    try:
        with anyio.CancelScope(shield=True), anyio.fail_after(_MAX_CLEAN_UP_S):
            await work(*arguments)
    except (GatewayError, TimeoutError) as error:
        log.info("live_session_not_closed", fault=str(error))
    except Exception:
        log.exception("live_session_not_closed")
