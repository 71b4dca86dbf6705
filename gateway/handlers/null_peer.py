"""The peer of a call whose client can receive neither notifications nor requests."""

from collections.abc import Mapping
from typing import Any, Final

from gateway.errors import CapabilityMissing
from gateway.handlers.interfaces import InputRequest, LogLevel, Peer


class _NullPeer:
    """Drops every notification and rejects every request to the client."""

    approval_timeout_s = 0.0
    session = ""

    def __init__(self, abilities: frozenset[str] = frozenset()) -> None:
        self._abilities = abilities

    def can(self, kind: str) -> bool:
        """True for abilities that need no message to the client."""
        return kind in self._abilities

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Do nothing: the client cannot receive notifications."""

    async def log(self, level: LogLevel, data: object, logger: str | None = None) -> None:
        """Do nothing: the client cannot receive notifications."""

    async def ask(self, input_requests: Mapping[str, InputRequest]) -> Mapping[str, Mapping[str, Any]]:
        """Reject every request.

        Raises:
            CapabilityMissing: always, unless `input_requests` is empty.
        """
        for input_request in input_requests.values():
            raise CapabilityMissing("this client cannot receive input requests here", capability=input_request.kind)
        return {}

    def recall(self, key: str) -> Any:
        """Return None: there was no earlier round."""
        del key

    def remember(self, key: str, value: object) -> None:
        """Do nothing: there will be no later round."""

    async def note_intent(self) -> None:
        """Do nothing: the call ends with its request."""

    async def note_wait(self, approval: Mapping[str, str] | None) -> None:
        """Do nothing: the call does not wait."""

    async def end_stream(self) -> None:
        """Do nothing: there is no stream."""


NULL_PEER: Final[Peer] = _NullPeer()
"""Stateless, so one instance serves all calls."""
PAGES_PEER: Final[Peer] = _NullPeer(frozenset({"ui"}))
"""Of a client that shows pages (MCP Apps)."""
