"""A replica uses what the machine allows of open files, and no more than it can use."""

import os

from tests.support.forks import Forked


def test_the_limit_is_raised_to_the_permitted_one() -> None:
    """Ours: a replica takes its connections also where the usual limit is low; no more than it may (SRV-1)."""
    child = Forked([], os.environ, module="tests.unit.app.low_limits")
    assert child.stdout is not None
    assert child.stdout.read().split() == [b"512"] * 4
    assert child.wait(60) == 0
    child.end()
