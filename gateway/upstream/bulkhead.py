"""Bulkhead, circuit breaker and retry budget between one tenant and one origin.

A bulkhead limits the running and the waiting calls; its load and failures do not affect other bulkheads. Waiting calls
are admitted in order, and time out after `wait_s`. After several consecutive failures the circuit opens: waiting and
new calls are refused. After the rest time, one call at a time probes the upstream. Each retry is deducted from a budget
that grows with calls and time.

The fast path, a free slot at a healthy upstream, costs one lookup and two counters.
"""

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import TypeAlias

import structlog

from gateway.domain.refusals import UpstreamSuspended
from gateway.errors import UpstreamBusy, UpstreamError
from gateway.upstream.egress.origins import Origin
from gateway.upstream.limits import BUSY_RETRY_S, MAX_BULKHEADS, RETRY_CREDIT_PER_S

log = structlog.get_logger(__name__)

_CREDIT_PER_CALL = 0.1

_Key: TypeAlias = tuple[str, str]
_Waiter: TypeAlias = "asyncio.Future[UpstreamError | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkheadLimits:
    """The limits of a bulkhead: running calls, waiting calls, their wait time, consecutive failures, and rest time.

    `reserve` is the initial and maximum retry budget, in retries.
    """

    at_once: int = 32
    waiting: int = 128
    wait_s: float = 2.0
    failures: int = 5
    rest_s: float = 30.0
    reserve: float = 10.0


class Bulkhead:
    """One tenant's calls to one origin.

    Every admitted call ends with `leave`. Before that it calls `succeed` or `fail`, unless it was cancelled or refused.
    The circuit has one state, `_rests_until`: 0 while it is closed, else the end of the rest time. After that time the
    circuit is half-open: a call that finds no other in flight is the probe, whose outcome closes the circuit or opens
    it again.
    """

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
        self._waiting: deque[_Waiter] = deque()
        self._failures = 0
        self._rests_until = 0.0
        self._credit, self._asked, self._asked_then, self._then = rules.reserve, 0, 0, 0.0
        self.running = 0

    def admit(self) -> bool:
        """Admit a call if a slot is free and the circuit is closed; False means that the call has to `wait`."""
        if self.running >= self._rules.at_once or self._rests_until:
            return False
        self.running += 1
        self._asked += 1
        return True

    async def wait(self, loop: asyncio.AbstractEventLoop) -> float:
        """Wait for a slot, or for admission as the probe of an open circuit. Return the waiting time in seconds.

        Raises:
            UpstreamBusy: too many calls wait already, or the wait timed out.
            UpstreamSuspended: the circuit is open, or opened while the call waited.
        """
        began = loop.time()
        if self._rests_until:
            self._admit_probe(began)
            self.running += 1
        elif self.running >= self._rules.at_once:
            await self._queue(loop)
        else:
            self.running += 1
        self._asked += 1
        return loop.time() - began

    async def occupy(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a slot, regardless of the circuit. The call does not report its outcome.

        Raises:
            UpstreamBusy: too many calls wait already, or the wait timed out.
            UpstreamSuspended: the circuit opened while the call waited.
        """
        if self.running >= self._rules.at_once:
            await self._queue(loop)
        else:
            self.running += 1

    def leave(self) -> None:
        """Release the slot of an admitted call, regardless of its outcome. The first waiting call gets the slot."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.running -= 1

    def succeed(self) -> None:
        """Record a success: reset the failure count and close the circuit."""
        self._failures = 0
        if self._rests_until:
            self._rests_until = 0.0
            self._report("upstream_resumed")

    def fail(self, loop: asyncio.AbstractEventLoop) -> None:
        """Record a failure: no connection, a timeout, or a status that reports an outage.

        Several consecutive failures open the circuit.
        """
        self._failures += 1
        if self._failures >= self._rules.failures:
            if not self._rests_until:
                self._report("upstream_suspended")
            now = loop.time()
            self._rests_until = now + self._rules.rest_s
            while self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(self._suspended(now))

    def pay(self, now: float) -> bool:
        """Withdraw one retry from the budget; False if the budget is used up or the circuit is open."""
        earned = (self._asked - self._asked_then) * _CREDIT_PER_CALL + (now - self._then) * RETRY_CREDIT_PER_S
        self._credit = min(self._rules.reserve, self._credit + earned)
        self._asked_then, self._then = self._asked, now
        if self._credit < 1 or self._rests_until:
            return False
        self._credit -= 1
        return True

    def is_idle(self, now: float) -> bool:
        """True if no calls are in flight and no rest time is left."""
        return self.running == 0 and self._rests_until <= now

    def _admit_probe(self, now: float) -> None:
        """Refuse the call unless it may probe the upstream: the rest time is over, and no other call is in flight."""
        if now < self._rests_until or self.running:
            raise self._suspended(now)

    async def _queue(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for a slot. `leave` passes its slot to the next waiting call, without changing the count."""
        if len(self._waiting) >= self._rules.waiting:
            raise _busy()
        waiter: _Waiter = loop.create_future()
        self._waiting.append(waiter)
        timer = loop.call_later(self._rules.wait_s, _cancel_wait, waiter)
        try:
            refusal = await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.result() is None:
                self.leave()
            raise
        finally:
            timer.cancel()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        if refusal is not None:
            raise refusal

    def _report(self, event: str) -> None:
        tenant, upstream = self._key
        log.warning(event, tenant_id=tenant, upstream=upstream, failures=self._failures)

    def _suspended(self, now: float) -> UpstreamSuspended:
        # uvloop's clock does not move within one iteration, where (now + 30) - now may exceed 30 by a rounding error
        seconds = max(BUSY_RETRY_S, math.ceil(round(self._rests_until - now, 3)))
        return UpstreamSuspended(
            f"The circuit breaker of the upstream is open after {self._failures} consecutive failures;"
            f" retry in {seconds:g} seconds.",
            retry_after_s=seconds,
        )


class Bulkheads:
    """The bulkheads of this replica; at `_MAX_BULKHEADS` bulkheads, idle ones are dropped."""

    def __init__(self, rules: BulkheadLimits | None = None) -> None:
        self._rules = rules or BulkheadLimits()
        self._bulkheads: dict[_Key, Bulkhead] = {}
        self._room = MAX_BULKHEADS

    def __len__(self) -> int:
        """Number of bulkheads."""
        return len(self._bulkheads)

    def find(self, tenant: str, origin: Origin) -> Bulkhead:
        """Return the bulkhead of this tenant and origin; create it on first use."""
        key = (tenant, origin.key)
        bulkhead = self._bulkheads.get(key)
        if bulkhead is None:
            if len(self._bulkheads) >= self._room:
                self._sweep(asyncio.get_running_loop().time())
            bulkhead = self._bulkheads[key] = Bulkhead(self._rules, key)
        return bulkhead

    def _sweep(self, now: float) -> None:
        """Drop idle bulkheads. The next sweep is due at twice the remaining number, at least at `_MAX_BULKHEADS`."""
        self._bulkheads = {key: bulkhead for key, bulkhead in self._bulkheads.items() if not bulkhead.is_idle(now)}
        self._room = max(MAX_BULKHEADS, 2 * len(self._bulkheads))


def _busy() -> UpstreamBusy:
    return UpstreamBusy(
        "The tenant has too many concurrent calls to this upstream; retry later.",
        retry_after_s=BUSY_RETRY_S,
    )


def _cancel_wait(waiter: _Waiter) -> None:
    if not waiter.done():
        waiter.set_result(_busy())
