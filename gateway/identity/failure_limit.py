"""Failed authentications: a limit per client address, and a bounded cost of checking credentials beyond it.

A credential is checked however many have failed, so that a valid one is admitted whatever else its address sends. After
a few failures, credentials that were never valid here are checked in batches: many ids in one query, a few queries a
second. Callers wait for their batch, and its size is bounded, also for each address. Beyond the limit a failure is
answered with 429 instead of 401. All limits hold for this replica alone.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from random import random

import anyio
import structlog

from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key
from gateway.errors import GatewayError, LimitExceeded
from gateway.identity.token_buckets import TokenBuckets

log = structlog.get_logger(__name__)

DEFAULT_RATE = 20.0
INTERVAL_S = 1.0
"""So long a flood waits for its answers, and a valid key that comes from its address for the first time."""
_BURST_S = 20
"""Burst of failures, in seconds of the rate."""
_SUSPECT = 0.05
"""The part of a burst after which an address is checked in batches: single lookups are what costs its neighbours."""
_ALL = 3
"""The failures of all addresses together before every new credential is checked in batches, in limits of one."""
_SAID_EVERY_S = 10.0

_CROWDED = "too many credentials from this address wait to be checked; retry later"

Found = Mapping[KeyId, tuple[Key, str]]


class FailureLimit:
    """Counts failed authentications by client address and in all."""

    def __init__(
        self, rate: float = DEFAULT_RATE, *, burst: float | None = None, interval_s: float = INTERVAL_S
    ) -> None:
        self.interval_s = interval_s
        """Seconds between two batches."""
        burst = rate * _BURST_S if burst is None else burst
        self._rate = rate
        self._each = TokenBuckets(rate=rate, burst=burst)
        self._all = TokenBuckets(rate=rate * _ALL, burst=max(1.0, burst * _ALL * _SUSPECT))
        self._said = TokenBuckets(rate=1 / _SAID_EVERY_S, burst=1)
        self._lines = TokenBuckets(rate=1.0, burst=10.0)

    def is_suspect(self, address: str) -> bool:
        """True if credentials from this address are checked in batches."""
        buckets = self._each
        return buckets.wait_for(address, buckets.burst * (1 - _SUSPECT)) > 0 or self._all.wait_for("") > 0

    def is_exceeded(self, address: str) -> bool:
        """True if a failure from this address exceeds the limit."""
        return self._each.wait_for(address) > 0

    def count(self, address: str) -> None:
        """Count one failure."""
        is_over = self._each.take(address) > 0
        self._all.take("")
        if is_over and not self._said.take(address) and not self._lines.take(""):
            log.warning("authentication_failures_limited", client=address, per_second=self._rate)

    def refusal(self, address: str) -> LimitExceeded:
        """The answer to a failure beyond the limit."""
        return LimitExceeded(
            f"too many failed authentications from this address (limit {self._rate:g} per second for each replica);"
            " retry later, with a valid credential",
            retry_after_s=max(1.0, self._each.wait_for(address)),
        )


class _Batch:
    """Ids that are looked up together; one of those that wait does it for all."""

    def __init__(self, closes_at: float) -> None:
        self.closes_at = closes_at
        self.lock = anyio.Lock()
        self.wanted: set[KeyId] = set()
        self.size = 0
        self.by_address: Counter[str] = Counter()
        self.found: Found | None = None
        self.failure: GatewayError | None = None


class BatchedLookups:
    """Lookups of keys, all of an interval in one query."""

    def __init__(
        self,
        find: Callable[[Collection[KeyId]], Awaitable[Found]],
        *,
        interval_s: float = INTERVAL_S,
        most: int = 1024,
        most_each: int = 512,
        most_held: int = 4096,
    ) -> None:
        self._find = find
        self._interval_s = interval_s
        self._most = most
        self._most_each = most_each
        self._free = most_held
        self._open: _Batch | None = None

    async def find(self, wanted: KeyId | None, address: str) -> tuple[Key, str] | None:
        """The key of this id once its batch was looked up; None when there is none. Without an id: wait as long.

        Raises:
            LimitExceeded: the batch is full, also for this address alone.
            GatewayError: the lookup failed.
        """
        batch = self._join(wanted, address)
        if batch is None:
            await self._hold()
            raise LimitExceeded(_CROWDED, retry_after_s=1.0)
        async with batch.lock:  # when its holder is cancelled, the next one looks up
            if batch.found is None and batch.failure is None:
                await self._look_up(batch)
        if batch.failure is not None:
            raise batch.failure.with_traceback(None)
        return None if wanted is None or batch.found is None else batch.found.get(wanted)

    async def _hold(self) -> None:
        """Delay a refusal about as long as a check would take: a flood slows down with its answers."""
        if not self._free:
            return
        self._free -= 1
        try:
            await anyio.sleep(self._interval_s * (0.5 + random()))  # noqa: S311  # spreads answers, no secret
        finally:
            self._free += 1

    def _join(self, wanted: KeyId | None, address: str) -> _Batch | None:
        """The next batch with this id in it; None when it is full."""
        batch = self._open
        if batch is None:
            batch = self._open = _Batch(time.monotonic() + self._interval_s)
        if batch.size >= self._most or batch.by_address[address] >= self._most_each:
            return None
        batch.size += 1
        batch.by_address[address] += 1
        if wanted is not None:
            batch.wanted.add(wanted)
        return batch

    async def _look_up(self, batch: _Batch) -> None:
        await anyio.sleep(max(0.0, batch.closes_at - time.monotonic()))
        if self._open is batch:
            self._open = None
        try:
            batch.found = await self._find(batch.wanted) if batch.wanted else {}
        except GatewayError as error:
            batch.failure = error
