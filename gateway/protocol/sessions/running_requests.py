"""The session requests that run at this replica; the client or the end of the session can cancel them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import anyio
import structlog
from mcp_types import INTERNAL_ERROR

from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, LimitExceeded
from gateway.protocol.http.cancellation import CancelScope
from gateway.protocol.http.jsonrpc import CANCELLED, error_response
from gateway.protocol.sessions.response_sink import ResponseSink

log = structlog.get_logger(__name__)

MAX_RUNNING: Final = 256
TAKEN: Final = "a request of this id is running"
"""The reason for the refusal of a second request with the same id."""

NO_ANSWER: Final = b""
"""The empty response of a request that its client has cancelled; no response is sent (MCP, cancellation)."""

_PARTING_S = 2.0
_RETRY_S = 1.0


class RequestKey(NamedTuple):
    """Tenant, session and id (as JSON) of a request."""

    tenant: TenantId
    session: str
    request: bytes


class RunningRequest:
    """One request, from its arrival to its response."""

    __slots__ = ("_cancel_scope", "_correlation_id", "_reason", "of")

    def __init__(self, of: RequestKey, correlation_id: str | None = None) -> None:
        self.of = of
        self._correlation_id = correlation_id
        self._cancel_scope = CancelScope()
        self._reason = ""

    def cancel(self) -> None:
        """Cancel the work at the client's request; the client receives no response."""
        self._cancel_scope.cancel()

    def end(self, reason: str) -> None:
        """Cancel the work; the client receives the reason."""
        self._reason = reason
        self._cancel_scope.cancel()

    def give_up(self) -> None:
        """Cancel the work; the caller sends the response itself."""
        self._cancel_scope.cancel()

    async def run(self, work: Callable[[], Awaitable[bytes]], sink: ResponseSink) -> bytes:
        """Return the response of the work; an error with the reason after `end`, `NO_ANSWER` after other cancellations.

        If the replica itself cancels the task, the sink sends an error for up to 2 s before the cancellation continues.
        """
        try:
            with self._cancel_scope:
                return await work()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_PARTING_S, shield=True):
                message = "the replica ended before the request did; its outcome is unknown"
                await sink.respond(self._failed(INTERNAL_ERROR, message, "call.replica_lost"))
            raise
        return self._failed(CANCELLED, self._reason, "call.cancelled") if self._reason else NO_ANSWER

    def _failed(self, code: int, message: str, kind: str) -> bytes:
        return error_response(self.of.request, code, message, kind=kind, correlation_id=self._correlation_id)


class RunningRequests:
    """All running requests of this replica."""

    def __init__(self) -> None:
        self._running: dict[RequestKey, RunningRequest] = {}

    def __len__(self) -> int:
        """Number of running requests."""
        return len(self._running)

    def track(self, request_run: RunningRequest) -> AbstractContextManager[None, None]:
        """Register the request by its id while the block runs.

        Raises:
            Conflict: on entering: a request of this id is running in the session.
            LimitExceeded: on entering: too many requests of the session are running.
        """
        return _Held(self, request_run)

    def add(self, request_run: RunningRequest) -> None:
        """Register the request by its id until `remove`; raises like `track`."""
        of = request_run.of
        if of in self._running:
            raise Conflict(TAKEN)
        if len(self._running) >= MAX_RUNNING and self._count(of) >= MAX_RUNNING:
            raise LimitExceeded(f"{MAX_RUNNING} requests of the session are running", retry_after_s=_RETRY_S)
        self._running[of] = request_run

    def remove(self, request_run: RunningRequest) -> None:
        """Remove a request that is over."""
        del self._running[request_run.of]

    def cancel(self, of: RequestKey) -> bool:
        """Cancel one request; True if it runs here."""
        request_run = self._running.get(of)
        if request_run is not None:
            request_run.cancel()
        return request_run is not None

    def end_session(self, tenant: TenantId, session: str | None = None) -> None:
        """Cancel all requests of a session, or of all sessions of a tenant."""
        for of, request_run in tuple(self._running.items()):
            if of.tenant == tenant and session in {None, of.session}:
                request_run.end("the session has ended")

    def _count(self, of: RequestKey) -> int:
        return sum(other.tenant == of.tenant and other.session == of.session for other in self._running)


class _Held:
    """Registers one request while its block runs."""

    __slots__ = ("_running", "_turn")

    def __init__(self, running: RunningRequests, request_run: RunningRequest) -> None:
        self._running = running
        self._turn = request_run

    def __enter__(self) -> None:
        self._running.add(self._turn)

    def __exit__(self, *_: object) -> None:
        self._running.remove(self._turn)
