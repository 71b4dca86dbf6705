"""Sessions with a server of revision 2026-07-28 that requests input from clients only in sessions.

FastMCP, and tools of the official SDKs that call `elicit` of their context, refuse such a request with an error of the
call. The call is then repeated in a session of its caller, and so are later requests of clients that can be asked. The
server has asked before it went on, so a repeated call does twice what it does when an answer comes in another round.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import structlog

from gateway.domain.refusals import LiveSourceFailed
from gateway.errors import UpstreamError
from gateway.upstream.live.interfaces import REQUESTED, LiveClient
from gateway.upstream.live.mcp.caller_sessions import CallerSessions
from gateway.upstream.live.mcp.limits import MAX_SEARCHED_LENGTH
from gateway.upstream.live.mcp.messages import RemoteRefusal, is_object
from gateway.upstream.live.mcp.time_limit import TimeLimit

log = structlog.get_logger(__name__)

_REFUSED = re.compile(r"server-(initiated|to-client) request", re.IGNORECASE)
"""The words of FastMCP and of the SDKs for Python and TypeScript."""

Call = Callable[[str, Mapping[str, object], LiveClient | None, TimeLimit], Awaitable[dict[str, Any]]]


class SessionFallback:
    """Chooses between requests of 2026-07-28 and sessions, for one server."""

    def __init__(self, callers: CallerSessions) -> None:
        self._callers = callers
        self._asks_in_sessions = False
        self._has_sessions = True

    async def call(
        self, call: Call, method: str, params: Mapping[str, object], client: LiveClient | None, *, limit: TimeLimit
    ) -> dict[str, Any]:
        """Run `call`, or the same request in a session."""
        owner = None if client is None else client.owner
        if client is None or owner is None or not any(client.can(kind) for kind in REQUESTED):
            return await call(method, params, client, limit)
        if self._asks_in_sessions:
            return await self._callers.call(method, params, client, owner, limit=limit)
        result: dict[str, Any] = {}
        refusal: RemoteRefusal | None = None
        try:
            result = await call(method, params, client, limit)
        except RemoteRefusal as error:
            refusal = error
        words = _error_text(result) if refusal is None else refusal.words[:MAX_SEARCHED_LENGTH]
        if _REFUSED.search(words) and await self._find_sessions(limit):
            return await self._callers.call(method, params, client, owner, limit=limit)
        if refusal is not None:
            raise refusal
        return result

    async def tidy(self) -> None:
        """End idle sessions."""
        if self._asks_in_sessions:
            await self._callers.tidy()

    async def close(self, *, is_retired: bool) -> None:
        """Forget the sessions; see `McpLink.close`."""
        if self._asks_in_sessions:
            await self._callers.close(is_retired=is_retired)

    async def _find_sessions(self, limit: TimeLimit) -> bool:
        """True if the server opens sessions; then they are used from now on."""
        if self._has_sessions and not self._asks_in_sessions:
            try:
                self._has_sessions = await self._callers.are_offered(limit)
            except (LiveSourceFailed, UpstreamError) as error:
                self._has_sessions = False
                log.info("live_sessions_refused", reason=error.message)
            self._asks_in_sessions = self._has_sessions
        return self._asks_in_sessions


def _error_text(result: Mapping[str, Any]) -> str:
    """The text of a tool's error; empty for other results."""
    content = result.get("content")
    if result.get("isError") is not True or not isinstance(content, list):
        return ""
    blocks = [block for block in cast("list[object]", content) if is_object(block)]
    return " ".join(str(block.get("text", "")) for block in blocks)[:MAX_SEARCHED_LENGTH]
