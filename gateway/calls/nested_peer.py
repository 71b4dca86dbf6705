"""The client as one call sees it: the clock stands still while the client is asked, and calls inside calls have names
of their own for what they ask and remember."""

from collections.abc import Mapping
from typing import Any

from gateway.calls.budget import CallBudget
from gateway.handlers.interfaces import LogLevel, Peer, Question


class NestedPeer:
    """A peer for one call; `prefix` names the call inside the outermost one, which has none."""

    def __init__(self, peer: Peer, budget: CallBudget, *, prefix: str = "") -> None:
        self._peer = peer
        self._budget = budget
        self._prefix = prefix

    def can(self, kind: str) -> bool:
        """Whether the client declared this."""
        return self._peer.can(kind)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the outermost call is; an inner one has a scale of its own, which the client does not know."""
        if not self._prefix:
            await self._peer.progress(progress, total, message)

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Send a log message."""
        await self._peer.log(level, data, logger)

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Mapping[str, Any]]:
        """The client's answers, in whatever time it takes; see the port."""
        asked = {self._prefix + key: question for key, question in questions.items()}
        with self._budget.paused():
            answers = await self._peer.ask(asked)
        return {key: answers[self._prefix + key] for key in questions}

    def recall(self, key: str) -> Any:
        """What an earlier round of this call remembered."""
        return self._peer.recall(self._prefix + key)

    def remember(self, key: str, value: object) -> None:
        """Keep a value for later rounds."""
        self._peer.remember(self._prefix + key, value)

    async def end_stream(self) -> None:
        """End the stream of this call's messages."""
        await self._peer.end_stream()
