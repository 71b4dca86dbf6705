"""The running requests of sessions at this replica: registered by id, escalated if slow, cancelled on demand."""

import asyncio
from collections.abc import Awaitable
from typing import Final, NamedTuple, Self

import anyio
import structlog
from mcp_types import INTERNAL_ERROR

from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, LimitExceeded
from gateway.protocol.http.jsonrpc import CANCELLED, error_response
from gateway.protocol.http.responses import Body
from gateway.protocol.sessions.limits import (
    CLAIM_AFTER_S,
    CLOSE_TIMEOUT_S,
    MAX_RUNNING,
    RUNNING_RETRY_S,
    STREAM_AFTER_S,
)
from gateway.protocol.sessions.response_sink import ResponseSink, SinkState

log = structlog.get_logger(__name__)

TAKEN: Final = "a request with this id is running"
"""The reason for the refusal of a second request with the same id."""

NO_RESPONSE: Final = b""
"""The empty response of a request that its client has cancelled; no response is sent (MCP, cancellation)."""


class RequestKey(NamedTuple):
    """Tenant, session and id (as JSON) of a request."""

    tenant: TenantId
    session: str
    request: bytes


class RequestExchange:
    """One request of a session, from its arrival to its response: id, response sink, escalation timer, cancel scope.

    The request is registered by its id while the block (`with`) runs; leaving the block ends its sink. Nearly every
    request is complete within `CLAIM_AFTER_S`, so it pays for one timer only.
    """

    __slots__ = ("_correlation_id", "_reason", "_running", "_spawn", "_timer", "key", "sink")

    def __init__(
        self, running: "RunningRequests", key: RequestKey, sink: ResponseSink, *, spawn: Spawn, correlation_id: str
    ) -> None:
        self.key = key
        self.sink = sink
        self._running = running
        self._spawn = spawn
        self._correlation_id = correlation_id
        self._reason = ""

    def __enter__(self) -> Self:
        self._running.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._running.remove(self)
        self.sink.abandon()

    async def serve(self, work: Awaitable[Body]) -> None:
        """Run the work and send the response that it returns.

        Cancelled work sends the reason of `end`, and no response after `cancel`. If the replica itself cancels the
        task, the sink sends an error for up to 2 s before the cancellation continues.

        Raises:
            Conflict: a request with this id is running at another replica.
        """
        text: Body | None = None
        self._timer = asyncio.get_running_loop().call_later(CLAIM_AFTER_S, self._escalate)
        try:
            with self.sink.scope:
                text = await work
        except anyio.get_cancelled_exc_class():
            # Shielded: the task is cancelled already, so an unshielded send would end before its first byte.
            with anyio.move_on_after(CLOSE_TIMEOUT_S, shield=True):
                message = "the replica stopped before the end of the request; its outcome is unknown"
                await self.sink.respond(self._failed(INTERNAL_ERROR, message, "call.replica_lost"))
            raise
        finally:
            self._timer.cancel()
        if self.sink.state is SinkState.REFUSED:
            raise Conflict(TAKEN)
        if text is None:
            text = self._failed(CANCELLED, self._reason, "call.cancelled") if self._reason else NO_RESPONSE
        await self.sink.respond(text)

    def cancel(self) -> None:
        """Cancel the work at the client's request; the client receives no response."""
        self.sink.scope.cancel()

    def end(self, reason: str) -> None:
        """Cancel the work; the client receives the reason."""
        self._reason = reason
        self.sink.scope.cancel()

    def _escalate(self) -> None:
        """Reserve the id across replicas now, and switch from JSON to a stream after `STREAM_AFTER_S`."""
        wait = STREAM_AFTER_S - CLAIM_AFTER_S
        self._timer = asyncio.get_running_loop().call_later(wait, self._spawn, self.sink.defer)
        self._spawn(self.sink.claim)

    def _failed(self, code: int, message: str, kind: str) -> bytes:
        return error_response(self.key.request, code, message, kind=kind, correlation_id=self._correlation_id)


class RunningRequests:
    """All running requests of this replica."""

    def __init__(self) -> None:
        self._running: dict[RequestKey, RequestExchange] = {}

    def __len__(self) -> int:
        """Number of running requests."""
        return len(self._running)

    def add(self, exchange: RequestExchange) -> None:
        """Register the request by its id until `remove`.

        Raises:
            Conflict: a request with this id is running in the session.
            LimitExceeded: too many requests of the session are running.
        """
        key = exchange.key
        if key in self._running:
            raise Conflict(TAKEN)
        # The total is compared first: it is one number, and `_count` walks all running requests.
        if len(self._running) >= MAX_RUNNING and self._count(key) >= MAX_RUNNING:
            raise LimitExceeded(
                f"too many running requests of the session (limit {MAX_RUNNING}); wait for a response",
                limit="session_requests",
                retry_after_s=RUNNING_RETRY_S,
            )
        self._running[key] = exchange

    def remove(self, exchange: RequestExchange) -> None:
        """Remove a request that is over."""
        del self._running[exchange.key]

    def cancel(self, key: RequestKey) -> bool:
        """Cancel one request; True if it runs here."""
        exchange = self._running.get(key)
        if exchange is not None:
            exchange.cancel()
        return exchange is not None

    def end_session(self, tenant: TenantId, session: str | None = None) -> None:
        """Cancel all requests of a session, or of all sessions of a tenant."""
        # A copy: `end` cancels synchronously, and the exchange then removes itself.
        for key, exchange in tuple(self._running.items()):
            if key.tenant == tenant and session in {None, key.session}:
                exchange.end("the session has ended")

    def _count(self, key: RequestKey) -> int:
        return sum(other.tenant == key.tenant and other.session == key.session for other in self._running)
