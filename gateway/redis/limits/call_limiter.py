"""Admission of calls: the rate per tenant and per key, and the number of concurrent calls per tenant.

One request to Redis leases tokens and slots for many calls, so most calls send no request (`rate_limit`,
`concurrency_limit`). A key's bucket is as large as its tenant's. Concurrent calls are limited per tenant, not per key.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import structlog

from gateway.domain.fairness.bounded_cache import BoundedCache
from gateway.domain.fairness.task_supervisor import Spawn
from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.redis.event_bus import EventBus
from gateway.redis.limits.concurrency_limit import SYNC, ConcurrencyLease
from gateway.redis.limits.limits import MAX_RATES, RENEW_S
from gateway.redis.limits.rate_limit import LEASE, LeasedTokenBucket

log = structlog.get_logger(__name__)


class CallLimiter:
    """The call limits of all tenants, as enforced by this replica."""

    def __init__(self, bus: EventBus, *, spawn: Spawn) -> None:
        self._bus = bus
        self._spawn = spawn
        self._lease = bus.script(LEASE)
        self._sync = bus.script(SYNC)
        self._rates = BoundedCache[tuple[TenantId, KeyId], LeasedTokenBucket](MAX_RATES)
        self._find_rate = self._rates.get  # bound once, so that a lookup costs as much as a dictionary lookup
        self._slots: dict[TenantId, ConcurrencyLease] = {}
        self._is_renewing = False

    def admit(self, tenant: TenantId, key: KeyId, limits: Limits) -> "_Admission":
        """Count one call while the block runs; a call beyond a limit does not enter the block.

        Raises:
            LimitExceeded: on entering; contains the time to retry after.
        """
        return _Admission(self, tenant, key, limits)

    def admit_inner(self, tenant: TenantId, key: KeyId, limits: Limits) -> AbstractAsyncContextManager[None]:
        """Take a token for a call inside another call; the inner call shares the outer call's slot.

        An inner call with its own slot could be refused because outer calls hold all slots while they wait for it.

        Raises:
            LimitExceeded: on entering; contains the time to retry after.
        """
        return _Token(self.rate_of(tenant, key), limits)

    @property
    def is_idle(self) -> bool:
        """True if this replica holds no slots and its renewal task has ended."""
        return not self._slots and not self._is_renewing

    def running(self, tenant: TenantId) -> int:
        """Number of calls of the tenant that run on this replica."""
        slots = self._slots.get(tenant)
        return 0 if slots is None else slots.in_use

    def rate_of(self, tenant: TenantId, key: KeyId) -> LeasedTokenBucket:
        """The token bucket of the key."""
        rate = self._find_rate((tenant, key))
        if rate is None:
            rate = self._rates[tenant, key] = LeasedTokenBucket(self._bus, self._lease, tenant, key, spawn=self._spawn)
        return rate

    def slots_of(self, tenant: TenantId) -> ConcurrencyLease:
        """Return the tenant's slots. The caller uses them before its next await, because idle slots are dropped."""
        slots = self._slots.get(tenant)
        if slots is None:
            slots = self._slots[tenant] = ConcurrencyLease(self._bus, self._sync, tenant, spawn=self._spawn)
            if not self._is_renewing:
                self._is_renewing = True
                self._spawn(self._renew)
        return slots

    async def _renew(self) -> None:
        """Renew the slots of every tenant until none is left."""
        try:
            while self._slots:
                await anyio.sleep(RENEW_S)
                for tenant, slots in tuple(self._slots.items()):
                    try:
                        await slots.renew()
                    except Exception:  # the slots of the others would expire
                        log.exception("slots_not_renewed", tenant_id=tenant)
                    if slots.is_idle:
                        del self._slots[tenant]
        finally:
            self._is_renewing = False


class _Admission:
    """The slot and the token of one call."""

    __slots__ = ("_buckets", "_key", "_limits", "_releases", "_slots", "_tenant")

    def __init__(self, buckets: CallLimiter, tenant: TenantId, key: KeyId, limits: Limits) -> None:
        self._buckets = buckets
        self._tenant = tenant
        self._key = key
        self._limits = limits
        self._slots: ConcurrencyLease | None = None
        self._releases = 0

    async def __aenter__(self) -> None:
        limits = self._limits
        slots = self._buckets.slots_of(self._tenant)
        if not slots.try_take(limits.concurrency):
            await slots.take(limits.concurrency)
        try:
            rate = self._buckets.rate_of(self._tenant, self._key)
            if not rate.try_take(limits):
                await rate.take(limits)
        except BaseException:
            slots.free()
            raise
        self._slots = slots

    async def __aexit__(self, *_: object) -> None:
        if self._slots is not None:
            self._slots.free()

    @asynccontextmanager
    async def released(self) -> AsyncGenerator[None]:
        """Release the slot while the block runs, then acquire one again; blocks of calls inside the call may overlap.

        Raises:
            LimitExceeded: no slot is free afterwards; the call continues without one.
        """
        self._releases += 1
        if self._slots is not None:
            self._slots.free()
            self._slots = None
        try:
            yield
        finally:
            self._releases -= 1
        if self._releases == 0:
            slots = self._buckets.slots_of(self._tenant)
            if not slots.try_take(self._limits.concurrency):
                await slots.take(self._limits.concurrency)
            self._slots = slots


class _Token:
    """The token of a call inside another call."""

    __slots__ = ("_limits", "_rate")

    def __init__(self, rate: LeasedTokenBucket, limits: Limits) -> None:
        self._rate = rate
        self._limits = limits

    async def __aenter__(self) -> None:
        if not self._rate.try_take(self._limits):
            await self._rate.take(self._limits)

    async def __aexit__(self, *_: object) -> None:
        """Do nothing: a token is not returned."""
