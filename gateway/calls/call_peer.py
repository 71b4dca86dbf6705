"""The `Peer` that the handler of one call receives; it delegates to the `Peer` of the request.

Time limits pause while a request to the client is pending. The keys of an inner call's requests and stored values get
a prefix, so that calls do not share keys.
"""

from collections.abc import Mapping
from typing import Any

from gateway.calls.budget import CallBudget
from gateway.handlers.interfaces import InputRequest, LogLevel, Peer


class CallPeer:
    """A peer for one call; `prefix` identifies an inner call and is empty for the outermost call."""

    def __init__(self, peer: Peer, budget: CallBudget, *, prefix: str = "") -> None:
        self._peer = peer
        self._budget = budget
        self._prefix = prefix

    @property
    def session(self) -> str:
        """The id of the client's MCP session; see `Peer`."""
        return self._peer.session

    @property
    def approval_timeout_s(self) -> float:
        """Seconds that the request may wait for a person; see `Peer`."""
        return self._peer.approval_timeout_s

    def can(self, kind: str) -> bool:
        """True if the client declared this capability."""
        return self._peer.can(kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report the progress of the outermost call; progress of inner calls has another scale and is dropped."""
        if not self._prefix:
            await self._peer.progress(progress, total, message)

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message."""
        await self._peer.log(level, data, logger)

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Return the client's responses; time limits pause until they arrive. See `Peer`."""
        prefixed = {self._prefix + key: input_request for key, input_request in input_requests.items()}
        with self._budget.paused():
            answers = await self._peer.ask(prefixed)
        return {key: answers[self._prefix + key] for key in input_requests}

    def recall(self, key: str) -> Any:
        """Return a value that an earlier round of this call stored."""
        return self._peer.recall(self._prefix + key)

    def remember(self, key: str, value: object) -> None:
        """Store a value for later rounds."""
        self._peer.remember(self._prefix + key, value)

    async def note_intent(self) -> None:
        """Forward the notice that the call may have effects from now on."""
        await self._peer.note_intent()

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Forward the notice that the call waits for a person, or no longer waits."""
        await self._peer.note_wait(approval)

    async def end_stream(self) -> None:
        """End the stream of this call's messages."""
        await self._peer.end_stream()
