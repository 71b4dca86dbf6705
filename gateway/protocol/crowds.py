"""How many requests each key has open at this replica, so that no key takes all the connections there are.

Calls and streams have caps of their own, over all replicas. What is counted here is everything, also a body that
trickles in and an answer that nobody reads: what the key's calls and streams may come to, and some more.
"""

from typing import Final

from gateway.bus.places import streams_of_key
from gateway.domain.identifiers import KeyId
from gateway.domain.policy import Limits
from gateway.errors import LimitExceeded

SPARE: Final = 50
"""How many requests a key may have open beside its calls and streams."""

_RETRY_S = 1.0


class Crowds:
    """The open requests of this replica, by key."""

    def __init__(self) -> None:
        self._open: dict[KeyId, int] = {}

    def __len__(self) -> int:
        """How many requests are open."""
        return sum(self._open.values())

    def enter(self, key: KeyId, limits: Limits) -> None:
        """Count one more.

        Raises:
            LimitExceeded: the key has as many open as it may have here.
        """
        count = self._open.get(key, 0)
        if count >= SPARE:
            most = limits.concurrency + streams_of_key(limits.streams) + SPARE
            if count >= most:
                said = f"{most} requests of the key are open at this replica, the most that may"
                raise LimitExceeded(said, retry_after_s=_RETRY_S)
        self._open[key] = count + 1

    def leave(self, key: KeyId) -> None:
        """Count one less."""
        left = self._open[key] - 1
        if left:
            self._open[key] = left
        else:
            del self._open[key]
