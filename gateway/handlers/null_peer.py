"""The peer of a call whose client can receive no notifications and no questions."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import LogLevel, Peer, Question


class _NullPeer:
    """Ignores every notification and refuses every question."""

    approval_timeout_s = 0.0

    def can(self, kind: str) -> bool:
        """Always False: the client cannot receive questions."""
        del kind
        return False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing: no client receives it."""

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Do nothing: no client receives it."""

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Mapping[str, Any]]:
        """Refuse every question.

        Raises:
            CapabilityMissing: always, unless there is no question.
        """
        for question in questions.values():
            raise CapabilityMissing("this client cannot receive questions here", capability=question.kind)
        return {}

    def recall(self, key: str) -> Any:
        """Return None: there was no earlier round."""
        del key

    def remember(self, key: str, value: object) -> None:
        """Do nothing: there will be no later round."""

    async def note_intent(self) -> None:
        """Do nothing: the call ends with its request."""

    async def end_stream(self) -> None:
        """Do nothing: there is no stream."""


NULL_PEER: Final[Peer] = _NullPeer()
"""Stateless, so one instance serves all calls."""
