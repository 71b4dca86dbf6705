"""Token buckets in this process, and what counts as one client address."""

import pytest

from gateway.domain.http.client_network import client_network
from gateway.identity.local_token_buckets import TokenBuckets


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_holds_a_burst_and_fills_at_its_rate() -> None:
    """Ours: a burst passes at once, the rest at the rate; a refusal has the time to wait (ISO-6)."""
    clock = Clock()
    buckets = TokenBuckets(rate=2, burst=4, clock=clock)

    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 0]
    assert buckets.take("a") == buckets.wait_for("a") == 0.5
    clock.now += 0.5
    assert (buckets.take("a"), buckets.take("a")) == (0, 0.5)
    clock.now += 3600
    assert [buckets.take("a") > 0 for _ in range(5)] == [False] * 4 + [True]


def test_names_have_buckets_of_their_own() -> None:
    """Ours: one name's tokens do not reduce those of another (ISO-6)."""
    buckets = TokenBuckets(rate=1, burst=1, clock=Clock())

    assert (buckets.take("a"), buckets.take("b"), buckets.take("a") > 0) == (0, 0, True)


def test_a_cost_beyond_the_burst_takes_a_full_bucket() -> None:
    """Ours: no request is so large that it never passes."""
    buckets = TokenBuckets(rate=1, burst=4, clock=Clock())

    assert (buckets.take("a", 100), buckets.take("a", 100)) == (0, 4)


def test_memory_is_bounded_by_forgetting_the_least_recently_used() -> None:
    """Ours: any number of names takes bounded memory (ISO-6)."""
    buckets = TokenBuckets(rate=1, burst=1, limit=3, clock=Clock())
    for name in ("a", "b", "c"):
        buckets.take(name)
    buckets.wait_for("a")
    for number in range(1000):
        buckets.take(f"other {number}")

    assert len(buckets) == 3


def test_a_refusal_takes_nothing() -> None:
    """Ours: trying again and again does not push the next token away."""
    clock = Clock()
    buckets = TokenBuckets(rate=1, burst=1, clock=clock)
    buckets.take("a")
    for _ in range(9):
        clock.now += 0.1
        assert buckets.take("a") > 0
    clock.now += 0.11
    assert buckets.take("a") == 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_an_ipv6_client_has_a_whole_network(address: str, network: str) -> None:
    """Ours: the addresses of one /64 belong to one client, who would else have 2^64 limits (ISO-6)."""
    assert client_network(address) == network
