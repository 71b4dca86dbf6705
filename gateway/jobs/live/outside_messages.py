"""Messages that a server sends on the GET stream of a caller's session, for a request at another replica.

A server names no request there. Requests that run for longer than 100 ms are marked in Redis with their replica, so a
question that finds no mark at first is tried again for about a second.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import anyio

from gateway.domain.sessions import UpstreamSessionKey
from gateway.errors import RedisUnavailable
from gateway.jobs.live.forwarding import Forwarding

_PAUSES_S = (0.0, 0.1, 0.2, 0.4, 0.6)


class RequestMarks(Protocol):
    """The marks of running requests."""

    async def runners(self, key: UpstreamSessionKey) -> Sequence[str]:
        """Return the other replicas that run requests in the session."""
        ...


class OutsideMessages:
    """Passes messages on to the replicas that run requests."""

    def __init__(self, marks: RequestMarks, forwarding: Forwarding) -> None:
        self._marks = marks
        self._forwarding = forwarding

    async def pass_on(self, key: UpstreamSessionKey, message: bytes) -> bool:
        """Give a message to the replica that runs a request in the session; False if there is none."""
        for pause in _PAUSES_S:
            await anyio.sleep(pause)
            with suppress(RedisUnavailable):
                if await self._forwarding.pass_on(await self._marks.runners(key), key, message):
                    return True
        return False
