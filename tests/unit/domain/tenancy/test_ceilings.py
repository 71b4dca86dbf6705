"""Ceilings of limits: resolved over defaults, and the smaller of both in force."""

import pytest

from gateway.domain.tenancy.ceilings import (
    DEFAULT_CEILINGS,
    LIMIT_NAMES,
    Ceilings,
    CeilingsInForce,
    least,
    read_ceilings,
)
from gateway.domain.tenancy.policy import Limits
from gateway.errors import BrokenSetting


def test_an_unset_ceiling_is_the_default() -> None:
    """ISO-3: every limit of every tenant has a ceiling."""
    found = CeilingsInForce(own=Ceilings(burst=7), defaults=DEFAULT_CEILINGS)

    assert found.limits.burst == 7
    assert found.limits.streams == DEFAULT_CEILINGS.streams
    assert found.defaulted == tuple(name for name in LIMIT_NAMES if name != "burst")


def test_the_default_ceilings_are_above_the_default_limits() -> None:
    """Ours: a tenant without a policy is not cut."""
    assert least(Limits(), DEFAULT_CEILINGS) == Limits()


def test_the_smaller_of_limit_and_ceiling_is_in_force() -> None:
    """ISO-3: each limit by itself, in both directions."""
    bounded = least(Limits(burst=10, streams=10), Limits(burst=5, streams=50))

    assert (bounded.burst, bounded.streams) == (5, 10)


def test_the_installation_sets_defaults_by_name() -> None:
    """Ours: `GATEWAY_CEILINGS` moves the defaults that it names."""
    found = read_ceilings(["calls_per_second=1500.5", " burst = 9 "])

    assert (found.calls_per_second, found.burst) == (1500.5, 9)
    assert found.streams == DEFAULT_CEILINGS.streams


@pytest.mark.parametrize("text", ["", "burst", "burst=0", "burst=-1", "burst=1.5", "speed=1", "burst=1000001"])
def test_a_broken_default_stops_the_start(text: str) -> None:
    """Ours: the message names the variable and the limits."""
    with pytest.raises(BrokenSetting, match=r"GATEWAY_CEILINGS.*calls_per_second"):
        read_ceilings([text])


@pytest.mark.parametrize("text", ["calls_per_second=nan", "calls_per_second=inf"])
def test_a_default_is_a_finite_number(text: str) -> None:
    """Ours: NaN compares as neither above nor below, so it would be no ceiling at all."""
    with pytest.raises(BrokenSetting):
        read_ceilings([text])
