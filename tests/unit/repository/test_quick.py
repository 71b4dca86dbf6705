"""The run without refills: rates that it disables, and that it leaves out tests about the refill."""

import subprocess
import sys

_SOURCE = """
from tests.support.quick import stop_refills
from gateway.identity.local_token_buckets import TokenBuckets
from gateway.redis.limits import call_limiter
stop_refills()
buckets = TokenBuckets(rate=1e9, burst=1)
print(buckets.take("a") == 0, buckets.take("a") > 0, "level = level " in vars(call_limiter)["LEASE"])
"""


def test_no_bucket_refills_in_that_run() -> None:
    """Ours: both kinds of buckets keep what was taken from them."""
    command = [sys.executable, "-c", _SOURCE]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True"] * 3
