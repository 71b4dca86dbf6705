"""The peer of a call whose client can be told nothing and asked nothing."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import LogLevel, Peer, Question


class _NullPeer:
    """Takes every message and answers no question."""

    def can(self, kind: str) -> bool:
        """Nothing was declared."""
        del kind
        return False

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Nobody listens."""

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Nobody listens."""

    async def ask(self, questions: Mapping[str, Question]) -> Mapping[str, Mapping[str, Any]]:
        """Nobody answers.

        Raises:
            CapabilityMissing: always, unless nothing is asked.
        """
        for question in questions.values():
            raise CapabilityMissing("this client cannot be asked anything here", capability=question.kind)
        return {}

    def recall(self, key: str) -> Any:
        """There was no earlier round."""
        del key

    def remember(self, key: str, value: object) -> None:
        """There will be no later round."""

    async def end_stream(self) -> None:
        """There is no stream."""


NULL_PEER: Final[Peer] = _NullPeer()
"""Holds nothing, so one serves all calls."""
