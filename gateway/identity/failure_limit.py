"""Limit on failed authentications per client address, and batched lookups for suspect addresses.

Credentials are checked even after many failures, because several clients may share an address. After a few failures,
credentials without a cached result are checked in batches: many ids in one query, one query per interval. Callers wait
for their batch; a full batch refuses further callers. A batch is limited in total and per address. Beyond the limit,
the response to a failure is 429 instead of 401. Each replica counts separately.
"""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from random import random
from typing import Generic, TypeVar

import anyio
import structlog

from gateway.errors import GatewayError, LimitExceeded
from gateway.identity.limits import BATCH_INTERVAL_S, FAILURE_BURST_S, LOG_EVERY_S
from gateway.identity.local_token_buckets import TokenBuckets

log = structlog.get_logger(__name__)

DEFAULT_RATE = 20.0
_SUSPECT = 0.05
"""The fraction of a burst after which an address is suspect, because its single lookups would slow other clients."""
_TOTAL_FACTOR = 3
"""Total rate limit as a multiple of the limit of one address; beyond the total, every address is suspect."""

_TOO_MANY_PENDING = "too many authentications from this address are pending; retry later"

_Id = TypeVar("_Id", bound=Hashable)
_Item = TypeVar("_Item")


class FailureLimit:
    """Counts failed authentications by client address and in total."""

    def __init__(
        self, rate: float = DEFAULT_RATE, *, burst: float | None = None, interval_s: float = BATCH_INTERVAL_S
    ) -> None:
        self.interval_s = interval_s
        """Seconds between two batches."""
        burst = rate * FAILURE_BURST_S if burst is None else burst
        self._rate = rate
        self._each = TokenBuckets(rate=rate, burst=burst)
        self._all = TokenBuckets(rate=rate * _TOTAL_FACTOR, burst=max(1.0, burst * _TOTAL_FACTOR * _SUSPECT))
        self._message = TokenBuckets(rate=1 / LOG_EVERY_S, burst=1)
        self._lines = TokenBuckets(rate=1.0, burst=10.0)

    def is_suspect(self, address: str) -> bool:
        """True if new credentials from this address are checked in batches."""
        buckets = self._each
        # guard: failures-all-addresses
        return buckets.wait_for(address, buckets.burst * (1 - _SUSPECT)) > 0 or self._all.wait_for("") > 0

    def is_exceeded(self, address: str) -> bool:
        """True if a failure from this address exceeds the limit."""
        return self._each.wait_for(address) > 0

    def count(self, address: str) -> None:
        """Count one failure."""
        is_over = self._each.take(address) > 0
        self._all.take("")
        if is_over and not self._message.take(address) and not self._lines.take(""):  # guard: failures-logged-once
            log.warning("authentication_failures_limited", client=address, per_second=self._rate)

    def refusal(self, address: str) -> LimitExceeded:
        """Return the error for a failure beyond the limit."""
        return LimitExceeded(
            f"too many failed authentications from this address (limit {self._rate:g} per second for each replica);"
            " retry later, with a valid credential",
            retry_after_s=max(1.0, self._each.wait_for(address)),
        )


class _Batch(Generic[_Id, _Item]):
    """Ids of one query; one of the waiting callers runs the query for all."""

    def __init__(self, closes_at: float) -> None:
        self.closes_at = closes_at
        self.lock = anyio.Lock()
        self.wanted: set[_Id] = set()
        self.size = 0
        self.by_address: Counter[str] = Counter()
        self.found: Mapping[_Id, _Item] | None = None
        self.failure: GatewayError | None = None


class BatchedLookups(Generic[_Id, _Item]):
    """Batched lookups of keys or other items: one query for all lookups within an interval."""

    def __init__(
        self,
        find: Callable[[Collection[_Id]], Awaitable[Mapping[_Id, _Item]]],
        *,
        interval_s: float = BATCH_INTERVAL_S,
        limit: int = 1024,
        max_each: int = 512,
        max_waiting: int = 4096,
    ) -> None:
        self._find = find
        self._interval_s = interval_s
        self._limit = limit
        self._max_each = max_each
        self._free = max_waiting
        self._open: _Batch[_Id, _Item] | None = None

    async def find(self, wanted: _Id | None, address: str) -> _Item | None:
        """Return the item with this id, or None, after the lookup of the batch. A call without an id waits as long.

        Raises:
            LimitExceeded: the batch is full, in total or for this address.
            GatewayError: the lookup failed.
        """
        batch = self._join(wanted, address)
        if batch is None:
            await self._delay_refusal()
            raise LimitExceeded(_TOO_MANY_PENDING, retry_after_s=1.0)
        async with batch.lock:  # if the holder is cancelled, the next caller runs the query
            if batch.found is None and batch.failure is None:
                await self._look_up(batch)
        if batch.failure is not None:
            raise batch.failure.with_traceback(None)
        return None if wanted is None or batch.found is None else batch.found.get(wanted)

    async def _delay_refusal(self) -> None:
        """Delay a refusal about as long as a check takes, to slow down a flood; 4096 delays run at a time."""
        if not self._free:
            return
        self._free -= 1
        try:
            await anyio.sleep(self._interval_s * (0.5 + random()))  # noqa: S311  # only spreads the responses
        finally:
            self._free += 1

    def _join(self, wanted: _Id | None, address: str) -> _Batch[_Id, _Item] | None:
        """Add the id to the open batch and return the batch; None if it is full, in total or for this address."""
        batch = self._open
        if batch is None:
            batch = self._open = _Batch[_Id, _Item](time.monotonic() + self._interval_s)
        if batch.size >= self._limit or batch.by_address[address] >= self._max_each:  # guard: failures-batch-bounded
            return None
        batch.size += 1
        batch.by_address[address] += 1
        if wanted is not None:
            batch.wanted.add(wanted)
        return batch

    async def _look_up(self, batch: _Batch[_Id, _Item]) -> None:
        await anyio.sleep(max(0.0, batch.closes_at - time.monotonic()))
        if self._open is batch:
            self._open = None
        try:
            batch.found = await self._find(batch.wanted) if batch.wanted else {}
        except GatewayError as error:
            batch.failure = error
