"""The pace of one tenant's requests at a replica: counted on a clock of the test's own."""

from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.policy import Limits
from gateway.protocol.limits import MAX_DELAY_S, MIN_PER_S
from gateway.protocol.request_rate import INITIALIZE_PRICE, RequestRateLimiter

EVIL, THIRD = TenantId("ten_evil"), TenantId("ten_third")


def _begun(
    pacing: RequestRateLimiter,
    limits: Limits,
    *,
    offered_per_s: float,
    seconds: float,
    open_at_once: int,
    price: int = 1,
) -> int:
    """Number of requests that begin within the time, with a fixed number open at once."""
    begun, ready = 0, [0.0] * open_at_once
    while (now := min(ready)) < seconds:
        place = ready.index(now)
        begins = now + pacing.delay(EVIL, limits, now)
        pacing.charge(EVIL, limits, now, price)
        begun += begins < seconds
        ready[place] = max(begins, now + open_at_once / offered_per_s)
    return begun


def test_a_flood_of_any_request_is_begun_at_the_tenants_rate() -> None:
    """ISO-3: ten times the limits, whether the requests are calls, lists or refused, over 256 connections."""
    limits = Limits(calls_per_second=200, burst=400)
    begun = _begun(RequestRateLimiter(), limits, offered_per_s=2000, seconds=10, open_at_once=256)

    assert begun <= 1.05 * (10 * MIN_PER_S) + 0.25 * MIN_PER_S


def test_a_flood_of_handshakes_is_paid_from_the_rate_of_its_tenant() -> None:
    """ISO-3: 1,200 sessions over 16 connections begin at a fifth of the pace, and no other tenant waits."""
    pacing, limits = RequestRateLimiter(), Limits(calls_per_second=200, burst=400)
    begun = _begun(pacing, limits, offered_per_s=2000, seconds=10, open_at_once=16, price=INITIALIZE_PRICE)

    assert begun <= 1.05 * (10 * MIN_PER_S / INITIALIZE_PRICE) + 0.25 * MIN_PER_S
    assert pacing.delay(THIRD, limits, 10.0) == 0


def test_a_debt_ends_within_the_longest_wait() -> None:
    """Ours: however many handshakes are charged, the next request waits at most five seconds."""
    pacing, limits = RequestRateLimiter(), Limits()
    pacing.delay(EVIL, limits, 0.0)
    for _ in range(10_000):
        pacing.charge(EVIL, limits, 0.0, INITIALIZE_PRICE)

    assert 0 < pacing.delay(EVIL, limits, 0.0) <= MAX_DELAY_S
    assert pacing.delay(EVIL, limits, 2 * MAX_DELAY_S) == 0


def test_one_tenants_flood_delays_no_other() -> None:
    """ISO-3: schedules are kept apart."""
    pacing = RequestRateLimiter()
    for _ in range(10_000):
        pacing.delay(EVIL, Limits(), 0.0)

    assert 0 < pacing.delay(EVIL, Limits(), 0.0) <= MAX_DELAY_S
    assert pacing.delay(THIRD, Limits(), 0.0) == 0
    assert pacing.delay(EVIL, Limits(), 60.0) == 0


def test_a_tenant_within_its_rate_never_waits() -> None:
    """Ours: an even rate below the pace and a short burst pass without a wait."""
    pacing = RequestRateLimiter()
    waits = [pacing.delay(EVIL, Limits(), number / 200) for number in range(2000)]
    burst = [pacing.delay(THIRD, Limits(), 1.0) for _ in range(int(MIN_PER_S * 0.25))]

    assert not any(waits)
    assert not any(burst)


def test_the_pace_rises_with_the_limit_that_the_operator_allows() -> None:
    """Ours: a tenant with a high limit is not held back below it."""
    pacing, limits = RequestRateLimiter(), Limits(calls_per_second=10_000)

    assert not any(pacing.delay(EVIL, limits, number / 10_000) for number in range(20_000))


def test_a_late_loop_slows_a_flood_and_nothing_else() -> None:
    """ISO-3: where the machine is busy, a tenant above its rate has less of it, and others do not wait."""
    pacing, limits = RequestRateLimiter(), Limits(calls_per_second=200)
    for _ in range(100):
        pacing.note_lag(0.1)
    begun = _begun(pacing, limits, offered_per_s=2000, seconds=10, open_at_once=256)
    waits = [pacing.delay(THIRD, limits, number / 200) for number in range(2000)]

    assert begun <= 0.42 * 10 * MIN_PER_S + 0.25 * MIN_PER_S
    assert not any(waits)


def test_schedules_are_bounded_in_number() -> None:
    """Ours: tenants that come and go leave nothing behind for ever."""
    pacing = RequestRateLimiter()
    for number in range(10_000):
        pacing.delay(TenantId(f"ten_{number}"), Limits(), 0.0)

    assert len(pacing) <= 4096
