"""Admission to the admin API in one replica: request rates and open requests by key, tenant and address, and slots.

All counters are in memory. Rates and open requests are checked before a tenant is looked up and before a body is read.
A body without a declared length is counted after it is read. Costly work needs one of a few slots, which tenants share
fairly. `gateway.identity.failure_limit` limits failed authentications earlier. The operator's key has limits of its
own, independent of the address, so that other clients cannot exhaust them.
"""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum

from gateway.admin.limits import (
    ADDRESS_FACTOR,
    BURST_S,
    BYTES_PER_TOKEN,
    DEFAULT_RATE,
    MAX_COST_S,
    MAX_OPEN_PER_ADDRESS,
    MAX_OPEN_PER_KEY,
    MAX_OPEN_PER_TENANT,
    OPEN_RETRY_S,
    TENANT_FACTOR,
)
from gateway.domain.fairness.share import FairSlotPool
from gateway.domain.http.client_network import client_network
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import LimitExceeded
from gateway.identity.local_token_buckets import TokenBuckets

_OPERATOR = "operator"


class WorkKind(StrEnum):
    """The kind of work that a request causes in the replica, in addition to reading and writing rows."""

    LIGHT = "light"
    CHECK = "check"
    """Validates definitions or examines the installation, which uses CPU."""
    SCAN = "scan"
    """May read a list to its end, because a search or filter can exclude most items."""
    OUTBOUND = "outbound"
    """May wait for an upstream server."""


class AdminLimits:
    """The limits of one replica; `rate` is requests per second for each key."""

    def __init__(self, rate: float = DEFAULT_RATE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._keys, self._tenants, self._addresses = (
            TokenBuckets(rate=rate * share, burst=rate * share * BURST_S, clock=clock)
            for share in (1, TENANT_FACTOR, ADDRESS_FACTOR)
        )
        self._open: Counter[str] = Counter()
        self._shares = {
            WorkKind.CHECK: FairSlotPool("slots for checks in the admin API", slots=16, queue=256),
            WorkKind.SCAN: FairSlotPool("slots for searches of lists in the admin API", slots=16, queue=256),
            WorkKind.OUTBOUND: FairSlotPool("slots for imports and tried calls", slots=64, queue=256),
        }

    @property
    def pools(self) -> Sequence[FairSlotPool]:
        """The slot pools for costly work, for metrics."""
        return tuple(self._shares.values())

    def admit(self, caller: Caller, address: str, *, size: int = 0, bytes_per_token: int = BYTES_PER_TOKEN) -> None:
        """Charge a request with a body of `size` bytes to the rates of its key and tenant.

        Raises:
            LimitExceeded: the rate of the key, its tenant or the address is exceeded; `retry_after_s` is set.
        """
        cost = min(1.0 + size // bytes_per_token, self._rate * MAX_COST_S)  # guard: admin-cost-of-size
        if not isinstance(caller, Principal):
            _take(self._keys, _OPERATOR, cost, "key")
            return
        # From the narrowest to the widest: a key beyond its rate takes no tokens of its tenant or address.
        _take(self._keys, caller.key, cost, "key")  # guard: admin-rate-key
        _take(self._tenants, caller.tenant, cost, "tenant")  # guard: admin-rate-tenant
        _take(self._addresses, client_network(address), cost, "client address")  # guard: admin-rate-address

    def admit_anonymous(self, address: str) -> None:
        """Charge a request without a credential to the rate of its address.

        Raises:
            LimitExceeded: the rate of the address is exceeded.
        """
        # guard: admin-rate-anonymous
        _take(self._addresses, f"anonymous {client_network(address)}", 1.0, "client address")

    @contextmanager
    def opened(self, caller: Caller, address: str) -> Generator[None]:
        """Count a request as open while the block runs.

        Raises:
            LimitExceeded: the limit of open requests of the key, tenant or address is reached.
        """
        # Only counters that were raised are lowered: the second of three may refuse.
        held: list[str] = []
        try:
            for name, limit, what in _open_request_counters(caller, address):
                if self._open[name] >= limit:  # guard: admin-open-requests
                    message = f"too many concurrent admin requests of the {what} (limit {limit} per replica)"
                    raise LimitExceeded(f"{message}; retry later", limit="admin_requests", retry_after_s=OPEN_RETRY_S)
                self._open[name] += 1
                held.append(name)
            yield
        finally:
            for name in held:
                self._open[name] -= 1
                if not self._open[name]:
                    del self._open[name]

    @asynccontextmanager
    async def working(self, work: WorkKind, caller: Caller) -> AsyncGenerator[None]:
        """Hold a slot while the block runs if the work is costly; one tenant holds at most a quarter of the slots.

        Raises:
            LimitExceeded: no slot became free in time, or the queue or the tenant's share of it is full.
        """
        share = self._shares.get(work)
        if share is None:  # guard: admin-costly-work
            yield
            return
        async with share.hold(caller.tenant if isinstance(caller, Principal) else _OPERATOR):
            yield


def _take(buckets: TokenBuckets, name: str, cost: float, what: str) -> None:
    wait_s = buckets.take(name, cost)
    if wait_s:
        message = (
            f"too many admin requests of this {what} (limit {buckets.rate:g} per second for each replica, of which"
        )
        text = f"{message} this one counts as {cost:g}); retry later"
        raise LimitExceeded(text, limit="admin_rate", retry_after_s=wait_s)


def _open_request_counters(caller: Caller, address: str) -> list[tuple[str, int, str]]:
    """Return the counters of an open request: name, limit, and the noun for error messages."""
    if not isinstance(caller, Principal):
        return [(_OPERATOR, MAX_OPEN_PER_KEY, "key")]
    return [
        (f"key {caller.key}", MAX_OPEN_PER_KEY, "key"),
        (f"tenant {caller.tenant}", MAX_OPEN_PER_TENANT, "tenant"),
        (f"address {client_network(address)}", MAX_OPEN_PER_ADDRESS, "client address"),
    ]
