"""GET stream of one caller's session at this replica, on which a server may ask the caller's client.

The stream is open while requests of the caller run here, and a while after, also if the client cannot be asked: a
question without a receiver would leave the call without a response. A server permits one such stream for each
session, so the refusal of a second one (409) means that another replica has it and passes questions on.
"""

import asyncio

import structlog

from gateway.errors import GatewayError
from gateway.upstream.live.mcp.limits import HEAD_S, LINGER_S
from gateway.upstream.live.mcp.session import StreamNotOffered
from gateway.upstream.live.mcp.streamable_session import StreamableSession, Take

log = structlog.get_logger(__name__)

_PAUSES_S = (0.2, 0.5, 1.0, 2.0)


class SessionStream:
    """The GET stream of a session; `take` handles what is meant for the client."""

    def __init__(self, session: StreamableSession, take: Take) -> None:
        self._session = session
        self._take = take
        self._following: asyncio.Task[None] | None = None
        self._has_answer = asyncio.Event()
        self._linger: asyncio.TimerHandle | None = None
        self._is_offered = True

    @property
    def is_open(self) -> bool:
        """True while the stream is open or being opened."""
        return self._following is not None

    async def ensure(self) -> None:
        """Open the stream unless it is open, or the server offers none; wait until the server has accepted it."""
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if not self._is_offered:
            return
        if self._following is None:
            self._has_answer.clear()
            self._following = asyncio.get_running_loop().create_task(self._follow())
        if not self._has_answer.is_set():
            try:
                async with asyncio.timeout(HEAD_S):
                    await self._has_answer.wait()
            except TimeoutError:
                self._has_answer.set()  # later requests do not wait again

    def release(self) -> None:
        """Close the stream after `LINGER_S`, unless it is used again."""
        if self._following is not None and self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(LINGER_S, self.stop)

    def stop(self) -> None:
        """Close the stream."""
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        if self._following is not None:
            self._following.cancel()

    async def close(self) -> None:
        """Close the stream and wait for its end."""
        following = self._following
        self.stop()
        if following is not None:
            await asyncio.gather(following, return_exceptions=True)

    async def _follow(self) -> None:
        failures = 0
        try:
            while failures < len(_PAUSES_S):
                try:
                    await self._session.follow(self._has_answer.set, self._take)
                    failures = 0
                except StreamNotOffered:
                    self._is_offered = False
                    return
                except GatewayError as error:
                    failures += 1
                    log.debug("session_stream_lost", reason=error.message)
                self._has_answer.set()
                if not self._session.running:
                    return
                await asyncio.sleep(_PAUSES_S[max(failures - 1, 0)])
        except Exception:
            log.exception("session_stream_failed")
        finally:
            self._following = None
            self._has_answer.set()
