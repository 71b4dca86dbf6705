"""The requests of sessions that this replica is answering: each ends when its client cancels it or its session ends."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import anyio
import structlog
from mcp_types import INTERNAL_ERROR

from gateway.domain.identifiers import TenantId
from gateway.errors import Conflict, LimitExceeded
from gateway.protocol.http.cancellation import Tether
from gateway.protocol.http.jsonrpc import CANCELLED, failed
from gateway.protocol.sessions.response_sink import Outlet

log = structlog.get_logger(__name__)

MAX_TURNS: Final = 256
TAKEN: Final = "a request of this id is running"
"""Why a second one is refused."""

NO_ANSWER: Final = b""
"""The end of a request that its client has cancelled: it is not answered (MCP, cancellation)."""

_PARTING_S = 2.0
_RETRY_S = 1.0


class TurnId(NamedTuple):
    """Which request of which session; its id as JSON."""

    tenant: TenantId
    session: str
    request: bytes


class Turn:
    """One request, from its arrival to its answer."""

    __slots__ = ("_correlation_id", "_reason", "_tether", "of")

    def __init__(self, of: TurnId, correlation_id: str | None = None) -> None:
        self.of = of
        self._correlation_id = correlation_id
        self._tether = Tether()
        self._reason = ""

    def cancel(self) -> None:
        """Stop the work; the client who wants this is not answered."""
        self._tether.call_off()

    def end(self, reason: str) -> None:
        """Stop the work; the client is told why."""
        self._reason = reason
        self._tether.call_off()

    def give_up(self) -> None:
        """Stop the work; whoever asks for this answers the client himself."""
        self._tether.call_off()

    async def run(self, work: Callable[[], Awaitable[bytes]], outlet: Outlet) -> bytes:
        """The answer of the work, or the reason for its end; None if the client cancelled.

        When the replica itself stops waiting, the client is told so before that goes on.
        """
        try:
            with self._tether:
                return await work()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_PARTING_S, shield=True):
                said = "the replica ended before the request did; its outcome is unknown"
                await outlet.finish(self._failed(INTERNAL_ERROR, said, "call.replica_lost"))
            raise
        return self._failed(CANCELLED, self._reason, "call.cancelled") if self._reason else NO_ANSWER

    def _failed(self, code: int, said: str, kind: str) -> bytes:
        return failed(self.of.request, code, said, kind=kind, correlation_id=self._correlation_id)


class Turns:
    """All of this replica."""

    def __init__(self) -> None:
        self._running: dict[TurnId, Turn] = {}

    def __len__(self) -> int:
        """How many requests are being answered."""
        return len(self._running)

    def holding(self, turn: Turn) -> AbstractContextManager[None, None]:
        """Have the turn found by its id while the block runs.

        Raises:
            Conflict: on entering: a request of this id is running in the session.
            LimitExceeded: on entering: too many requests of the session are running.
        """
        return _Held(self, turn)

    def add(self, turn: Turn) -> None:
        """Have the turn found by its id until it is removed; see `holding`."""
        of = turn.of
        if of in self._running:
            raise Conflict(TAKEN)
        if len(self._running) >= MAX_TURNS and self._count(of) >= MAX_TURNS:
            raise LimitExceeded(f"{MAX_TURNS} requests of the session are running", retry_after_s=_RETRY_S)
        self._running[of] = turn

    def remove(self, turn: Turn) -> None:
        """It is over."""
        del self._running[turn.of]

    def cancel(self, of: TurnId) -> bool:
        """Cancel one request, if it is answered here."""
        turn = self._running.get(of)
        if turn is not None:
            turn.cancel()
        return turn is not None

    def end_session(self, tenant: TenantId, session: str | None = None) -> None:
        """Cancel everything of a session, or of all sessions of a tenant."""
        for of, turn in tuple(self._running.items()):
            if of.tenant == tenant and session in {None, of.session}:
                turn.end("the session has ended")

    def _count(self, of: TurnId) -> int:
        return sum(other.tenant == of.tenant and other.session == of.session for other in self._running)


class _Held:
    """One turn while it is found by its id."""

    __slots__ = ("_turn", "_turns")

    def __init__(self, turns: Turns, turn: Turn) -> None:
        self._turns = turns
        self._turn = turn

    def __enter__(self) -> None:
        self._turns.add(self._turn)

    def __exit__(self, *_: object) -> None:
        self._turns.remove(self._turn)
