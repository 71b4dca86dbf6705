"""`QUICK=1 make test`: no token bucket refills, as on a machine so quick that no time passes between two requests.

A test that sends more requests than a burst passes on a slow machine, because the bucket refills meanwhile, and fails
on a quick one. Tests marked `refill` are about the refill itself, and are skipped.
"""

import pytest

from gateway.identity.local_token_buckets import TokenBuckets
from gateway.redis.limits import call_limiter
from gateway.redis.limits.rate_limit import LEASE

_REFILL = "level = level + (now - at) * rate / 1000000"


def stop_refills() -> None:
    """Keep every bucket of this process, and of those that are forked from it, at what was taken from it."""
    assert _REFILL in LEASE, "the refill of the call rate has another form now"
    call_limiter.__dict__["LEASE"] = LEASE.replace(_REFILL, "level = level")
    defaults = TokenBuckets.__init__.__kwdefaults__
    assert defaults is not None
    defaults["clock"] = _stopped


def _stopped() -> float:
    """A clock that does not advance."""
    return 0.0


def without_refills(tests: list[pytest.Item]) -> None:
    """Skip the tests that are about the refill."""
    for test in tests:
        if test.get_closest_marker("refill") is not None:
            test.add_marker(pytest.mark.skip(reason="no bucket refills (QUICK)"))
