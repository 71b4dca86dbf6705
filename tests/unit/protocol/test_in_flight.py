"""Open requests, counted by key."""

import pytest

from gateway.domain.identifiers import KeyId, TenantId
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.policy import Limits
from gateway.domain.tenancy.principals import Principal
from gateway.errors import LimitExceeded
from gateway.protocol.in_flight import SPARE, InFlightLimiter
from gateway.redis.limits.stream_limiter import streams_of_key


def _of(tenant: str, key: str) -> Principal:
    return Principal(tenant=TenantId(tenant), slug=tenant, key=KeyId(key), subject=key, scopes=frozenset({Scope.MCP}))


ALICE, BOB = _of("ten_a", "key_alice"), _of("ten_a", "key_bob")
FEW = Limits(concurrency=2, streams=4)


def test_a_key_has_so_many_and_another_its_own() -> None:
    """Ours: the expected number of its calls and streams and some more, separately for each key (TEN-3, TEN-5)."""
    limiter = InFlightLimiter()
    most = FEW.concurrency + 4 + SPARE
    for _ in range(most):
        limiter.acquire(ALICE, FEW)

    with pytest.raises(LimitExceeded) as caught:
        limiter.acquire(ALICE, FEW)
    assert caught.value.retry_after_s
    assert str(most) in caught.value.message
    limiter.acquire(BOB, FEW)
    limiter.release(ALICE)
    limiter.acquire(ALICE, FEW)
    assert len(limiter) == most + 1


def test_all_keys_of_a_tenant_have_a_quarter_of_the_open_requests() -> None:
    """ISO-3: many keys of one tenant together leave three quarters to the others."""
    limiter = InFlightLimiter(limit=40)
    for number in range(10):
        limiter.acquire(_of("ten_a", f"key_{number}"), FEW)

    with pytest.raises(LimitExceeded, match="10 of 40"):
        limiter.acquire(_of("ten_a", "key_last"), FEW)
    limiter.acquire(_of("ten_b", "key_other"), FEW)
    limiter.release(_of("ten_a", "key_0"))
    limiter.acquire(_of("ten_a", "key_last"), FEW)
    assert (limiter.slot_pool.held("ten_a"), limiter.slot_pool.held("ten_b")) == (10, 1)


def test_nothing_is_kept_of_former_keys() -> None:
    """Ours: keys that come and go leave nothing behind (RES-6)."""
    limiter = InFlightLimiter()
    for _ in range(3):
        limiter.acquire(ALICE, FEW)
    for _ in range(3):
        limiter.release(ALICE)

    assert len(limiter) == 0


@pytest.mark.parametrize(
    ("cap", "share"), [(1, 1), (2, 2), (5, 5), (20, 18), (50, 45), (60, 50), (100, 50), (101, 51), (1000, 500)]
)
def test_a_key_has_most_of_few_streams_and_half_of_many(cap: int, share: int) -> None:
    """Ours: 50 by default, more where the tenant has more than a hundred (TEN-3)."""
    assert streams_of_key(cap) == share
    assert streams_of_key(Limits().streams) == 50
