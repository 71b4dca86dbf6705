"""Open requests, counted by key."""

import pytest

from gateway.bus.places import streams_of_key
from gateway.domain.identifiers import KeyId
from gateway.domain.policy import Limits
from gateway.errors import LimitExceeded
from gateway.protocol.crowds import SPARE, Crowds

ALICE, BOB = KeyId("key_alice"), KeyId("key_bob")
FEW = Limits(concurrency=2, streams=4)


def test_a_key_has_so_many_and_another_its_own() -> None:
    """Ours: what its calls and streams may come to and some more, each key for itself (TEN-3, TEN-5)."""
    crowds = Crowds()
    most = FEW.concurrency + 4 + SPARE
    for _ in range(most):
        crowds.enter(ALICE, FEW)

    with pytest.raises(LimitExceeded) as caught:
        crowds.enter(ALICE, FEW)
    assert caught.value.retry_after_s
    assert str(most) in caught.value.message
    crowds.enter(BOB, FEW)
    crowds.leave(ALICE)
    crowds.enter(ALICE, FEW)
    assert len(crowds) == most + 1


def test_nothing_is_kept_of_who_has_left() -> None:
    """Ours: keys that come and go leave nothing behind (RES-6)."""
    crowds = Crowds()
    for _ in range(3):
        crowds.enter(ALICE, FEW)
    for _ in range(3):
        crowds.leave(ALICE)

    assert len(crowds) == 0


@pytest.mark.parametrize(
    ("cap", "share"), [(1, 1), (2, 2), (5, 5), (20, 18), (50, 45), (60, 50), (100, 50), (101, 51), (1000, 500)]
)
def test_a_key_has_most_of_few_streams_and_half_of_many(cap: int, share: int) -> None:
    """Ours: 50 where nothing was said, more where the tenant has more than a hundred (TEN-3)."""
    assert streams_of_key(cap) == share
    assert streams_of_key(Limits().streams) == 50
