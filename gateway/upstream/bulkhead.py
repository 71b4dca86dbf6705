"""How much one tenant asks of one upstream at a time, and whether it is asked at all.

A lane is one tenant's way to one origin; what happens in it is felt in no other. In it so many calls are under way
and a bounded number waits for them, in order and not for long. After some failures in a row the upstream rests: nobody
waits and nothing is sent, until one call at a time tries whether it is back. What is sent again is paid for from a
budget that grows with what is asked.

The plain case, a free place at an upstream that is well, costs a look-up and a counter.
"""

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from gateway.errors import UpstreamBusy, UpstreamError, UpstreamSuspended
from gateway.upstream.egress.origins import Origin

log = structlog.get_logger(__name__)

_KEPT = 4096
_CREDIT_PER_CALL = 0.1
_CREDIT_PER_S = 0.2
_RETRY_S = 1.0

_Key: TypeAlias = tuple[str, str]
_Place: TypeAlias = "asyncio.Future[UpstreamError | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkheadLimits:
    """The bounds of a lane: calls at once, calls that wait and how long, failures in a row and the rest after them.

    `reserve` is how many calls may be sent again before others have earned it.
    """

    at_once: int = 32
    waiting: int = 128
    wait_s: float = 2.0
    failures: int = 5
    rest_s: float = 30.0
    reserve: float = 10.0


class Bulkhead:
    """One tenant's calls to one origin; whoever is let in leaves again, and says before how it went."""

    __slots__ = (
        "_asked",
        "_asked_then",
        "_credit",
        "_failures",
        "_key",
        "_rests_until",
        "_rules",
        "_then",
        "_waiting",
        "running",
    )

    def __init__(self, rules: BulkheadLimits, key: _Key = ("", "")) -> None:
        self._rules = rules
        self._key = key
        self._waiting: deque[_Place] = deque()
        self._failures = 0
        self._rests_until = 0.0
        self._credit, self._asked, self._asked_then, self._then = rules.reserve, 0, 0, 0.0
        self.running = 0

    def admit(self) -> bool:
        """Let a call in if that needs no thought; otherwise it has to `wait`."""
        if self.running >= self._rules.at_once or self._rests_until:
            return False
        self.running += 1
        self._asked += 1
        return True

    async def wait(self, loop: asyncio.AbstractEventLoop) -> float:
        """Let a call in as soon as there is a place, or as the one that tries a resting upstream; the seconds it took.

        Raises:
            UpstreamBusy: too many wait already, or it waited long enough.
            UpstreamSuspended: the upstream rests.
        """
        began = loop.time()
        if self._rests_until:
            self._try(began)
            self.running += 1
        elif self.running >= self._rules.at_once:
            await self._queue(loop)
        else:
            self.running += 1
        self._asked += 1
        return loop.time() - began

    def leave(self) -> None:
        """A call that was let in is over, however it ended; its place goes to the first that waits."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self.running -= 1

    def succeed(self) -> None:
        """The upstream has answered, whatever it said."""
        self._failures = 0
        if self._rests_until:
            self._rests_until = 0.0
            self._tell("upstream_resumed")

    def fail(self, loop: asyncio.AbstractEventLoop) -> None:
        """The upstream is away, too slow, or says itself that it cannot answer anything."""
        self._failures += 1
        if self._failures >= self._rules.failures:
            if not self._rests_until:
                self._tell("upstream_suspended")
            now = loop.time()
            self._rests_until = now + self._rules.rest_s
            while self._waiting:
                place = self._waiting.popleft()
                if not place.done():
                    place.set_result(self._suspended(now))

    def pay(self, now: float) -> bool:
        """Whether there is the budget to send something again; if so, it is paid."""
        earned = (self._asked - self._asked_then) * _CREDIT_PER_CALL + (now - self._then) * _CREDIT_PER_S
        self._credit = min(self._rules.reserve, self._credit + earned)
        self._asked_then, self._then = self._asked, now
        if self._credit < 1 or self._rests_until:
            return False
        self._credit -= 1
        return True

    def is_idle(self, now: float) -> bool:
        """Whether nothing of this lane has to be remembered."""
        return self.running == 0 and self._rests_until <= now

    def _try(self, now: float) -> None:
        """Let one call at a time find out whether an upstream that has rested is back."""
        if now < self._rests_until or self.running:
            raise self._suspended(now)

    async def _queue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a place; it stays counted while it is handed over."""
        if len(self._waiting) >= self._rules.waiting:
            raise _busy()
        place: _Place = loop.create_future()
        self._waiting.append(place)
        timer = loop.call_later(self._rules.wait_s, _give_up, place)
        try:
            refusal = await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result() is None:
                self.leave()
            raise
        finally:
            timer.cancel()
            if place in self._waiting:
                self._waiting.remove(place)
        if refusal is not None:
            raise refusal

    def _tell(self, event: str) -> None:
        tenant, upstream = self._key
        log.warning(event, tenant_id=tenant, upstream=upstream, failures=self._failures)

    def _suspended(self, now: float) -> UpstreamSuspended:
        seconds = max(_RETRY_S, math.ceil(self._rests_until - now))
        return UpstreamSuspended(
            f"The upstream failed {self._failures} times in a row and is left alone; try again in {seconds:g} seconds.",
            retry_after_s=seconds,
        )


class Bulkheads:
    """The lanes of this replica; of those that nobody uses only some are kept."""

    def __init__(self, rules: BulkheadLimits | None = None) -> None:
        self._rules = rules or BulkheadLimits()
        self._bulkheads: dict[_Key, Bulkhead] = {}
        self._room = _KEPT

    def __len__(self) -> int:
        """How many are kept."""
        return len(self._bulkheads)

    def find(self, tenant: str, origin: Origin) -> Bulkhead:
        """The way of this tenant to this origin."""
        key = (tenant, origin.key)
        bulkhead = self._bulkheads.get(key)
        if bulkhead is None:
            if len(self._bulkheads) >= self._room:
                self._sweep(asyncio.get_running_loop().time())
            bulkhead = self._bulkheads[key] = Bulkhead(self._rules, key)
        return bulkhead

    def _sweep(self, now: float) -> None:
        """Forget the lanes of which nothing has to be remembered; not again before as many have come."""
        self._bulkheads = {key: bulkhead for key, bulkhead in self._bulkheads.items() if not bulkhead.is_idle(now)}
        self._room = max(_KEPT, 2 * len(self._bulkheads))


def _busy() -> UpstreamBusy:
    return UpstreamBusy(
        "The tenant has as many calls under way at this upstream as it may have; try again in a moment.",
        retry_after_s=_RETRY_S,
    )


def _give_up(place: _Place) -> None:
    if not place.done():
        place.set_result(_busy())
